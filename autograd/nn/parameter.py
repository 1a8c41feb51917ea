"""Parameter: a tensor that a Module finds by itself."""

from __future__ import annotations

from ..tensor import Tensor


class Parameter(Tensor):
    """A leaf around `data`'s memory that a Module registers when it is assigned as an attribute.

    TypeError when `data` is not a Tensor.
    """

    __slots__ = ()

    def __init__(self, data: Tensor, requires_grad: bool = True):
        if not isinstance(data, Tensor):
            raise TypeError(f"[Parameter] expected a Tensor; got {type(data).__name__}. Wrap it with ag.tensor first")
        self.data, self.version = data.data, data.version
        self.grad = self.node = self.views = self.hooks = None
        self._requires_grad = False
        self.requires_grad = requires_grad
