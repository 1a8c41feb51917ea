"""PyTorch's torch.utils, as far as there is one: `data` and `checkpoint`, so that scripts need to change one import only."""

import sys

from . import data
from . import recompute as checkpoint

# `from autograd.utils.data import DataLoader` works, as os.path does.
sys.modules[f"{__name__}.data"] = data
sys.modules[f"{__name__}.checkpoint"] = checkpoint

__all__ = ["checkpoint", "data"]
