"""PyTorch's torch.utils, as far as there is one: `data`, so that scripts need to change one import only."""

import sys

from . import data

sys.modules[f"{__name__}.data"] = data  # `from autograd.utils.data import DataLoader` works, as os.path does

__all__ = ["data"]
