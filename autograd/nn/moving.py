"""What moves and casts a module in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import create, dtypes
from ..device import as_device
from ..tensor import Tensor

if TYPE_CHECKING:
    from .module import Module


class Movable:
    """The part of Module that changes where its tensors are, and of what type: the same parameters, new memory."""

    def to(self: Any, *args: Any, device: Any = None, dtype: Any = None) -> Module:
        """Move and cast in place: to("wgpu"), to(ag.float16), to(device, dtype), to(other_tensor).

        The parameters stay the same objects, so an optimizer keeps them. Integer and bool buffers are moved only.
        """
        for a in args:
            if isinstance(a, Tensor):
                device, dtype = a.device, a.dtype
            elif isinstance(a, dtypes.DType):
                dtype = a
            else:
                device = a
        dtype = None if dtype is None else dtypes.as_dtype(dtype)
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(f"[Module.to] a module's dtype is a floating point type; got {dtype}")
        where = None if device is None else as_device(device)
        return _convert(self, lambda t: t.to(dtype=dtype if t.dtype.is_floating_point else None, device=where))

    def type(self: Any, dst_type: Any) -> Module:
        """Cast all parameters and buffers, integer ones too: ag.float16, "float16", ag.HalfTensor, "autograd.HalfTensor"."""
        kind = create.empty(0, device="cpu").type(dst_type).dtype
        if not kind.is_floating_point:
            raise TypeError(f"[Module.type] a module's dtype is a floating point type; got {kind}")
        return _convert(self, lambda t: t.to(kind))

    def to_empty(self: Any, *, device: Any, recurse: bool = True) -> Module:
        """Move in place without the values, which do not matter yet: load_state_dict or an initialiser follows."""
        where = as_device(device)
        return _convert(self, lambda t: create.empty(t.shape, dtype=t.dtype, device=where), recurse)

    def half(self: Any) -> Module:
        """to(float16)."""
        return self.to(dtypes.float16)

    def bfloat16(self: Any) -> Module:
        """to(bfloat16)."""
        return self.to(dtypes.bfloat16)

    def float(self: Any) -> Module:
        """to(float32)."""
        return self.to(dtypes.float32)

    def double(self: Any) -> Module:
        """to(float64)."""
        return self.to(dtypes.float64)

    def cpu(self: Any) -> Module:
        """to("cpu")."""
        return self.to("cpu")

    def wgpu(self: Any, index: int = 0) -> Module:
        """to(f"wgpu:{index}")."""
        return self.to(f"wgpu:{index}")


def _convert(root: Module, change: Callable, recurse: bool = True) -> Module:
    """Put change(t) in the place of every parameter's memory, its gradient's, and every buffer."""
    for _, p in root.named_parameters(recurse=recurse):
        for t in (p, p.grad):
            new = None if t is None else change(t.detach())
            if t is not None and new is not None and new.array is not t.array:
                t.array, t.version, t.views = new.array, [t.version[0] + 1], None
    twins: dict[Tensor, Tensor] = {}  # a buffer with two names stays one tensor
    for module in root.modules() if recurse else (root,):
        for name, b in module._buffers.items():
            if b is not None:
                new = twins[b] if b in twins else change(b.detach())
                new.__class__ = type(b)  # one of a lazy layer stays one
                twins[b] = module._buffers[name] = b if new.array is b.array else new
    return root
