"""Parameter: a tensor that a Module finds by itself."""

from __future__ import annotations

from .. import create
from ..tensor import Tensor


class Parameter(Tensor):
    """A leaf around `data`'s memory that a Module registers when it is assigned as an attribute.

    TypeError when `data` is not a Tensor.
    """

    __slots__ = ()

    def __init__(self, data: Tensor, requires_grad: bool = True):
        if not isinstance(data, Tensor):
            raise TypeError(f"[Parameter] expected a Tensor; got {type(data).__name__}. Wrap it with ag.tensor first")
        self.array, self.version = data.array, data.version
        self._grad = self.node = self.views = self.hooks = None
        self._requires_grad = False
        self.requires_grad = requires_grad


class Buffer:
    """`module.name = nn.Buffer(tensor)` is module.register_buffer("name", tensor, persistent)."""

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True):
        self.tensor, self.persistent = data, persistent


class UninitializedParameter(Parameter):
    """A parameter of a lazy layer before its sizes are known: no elements, and 0 in the place of each unknown size."""

    __slots__ = ()
    becomes: type[Tensor] = Parameter

    def materialize(self, shape: tuple) -> None:
        """Become a Parameter of zeros of that shape: the same object, dtype and device."""
        made = create.empty(shape, device=self.device, dtype=self.dtype)
        self.array, self.version, self.views = made.array, [self.version[0] + 1], None
        self.__class__ = self.becomes  # type: ignore[assignment]


class UninitializedBuffer(UninitializedParameter):
    """The same of a buffer: it becomes a plain tensor."""

    __slots__ = ()
    becomes = Tensor

    def __init__(self, data: Tensor):
        super().__init__(data, requires_grad=False)
