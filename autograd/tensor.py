"""Tensor: data on a device, and its place on the tape. Its operators are attached by the modules in ops/."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from operator import attrgetter
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from . import dtypes
from .device import CPU, Device
from .grad_mode import state
from .hooks import Afterwards, Keep, RemovableHandle, distinct, set_grad
from .tape import Node, backward, make_pick

if TYPE_CHECKING:
    from .aliasing import Views


class Tensor:
    """An n-dimensional array that remembers how it was computed. Make one with ag.tensor, ag.zeros, ag.randn, …

    array: a NumPy array on the CPU, a webgpu Array on wgpu; node: the operation it came from (None for a leaf);
    grad: where backward() adds up; version: a counter of in-place changes, shared with views.
    """

    __slots__ = ("__dict__", "__weakref__", "_grad", "_requires_grad", "array", "hooks", "node", "version", "views")
    __array_priority__ = 1000

    array: Any
    _grad: Tensor | None
    node: Node | None
    version: list[int]
    views: Views | None
    hooks: list | None
    if TYPE_CHECKING:  # the operators, attached by ops/

        def __getattr__(self, name: str) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]
        def __neg__(self) -> Tensor: ...
        def __add__(self, other: Any) -> Tensor: ...

        __abs__ = __invert__ = __neg__
        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __add__
        __matmul__ = __mod__ = __floordiv__ = __and__ = __or__ = __xor__ = __getitem__ = __add__
        __lt__ = __le__ = __gt__ = __ge__ = __add__

    def __new__(cls, *data: Any, **options: Any) -> Tensor:
        """PyTorch's old way: the default dtype of the given data, Tensor([1, 2]), or shape, Tensor(2, 3)."""
        if cls is not Tensor:
            return _new(cls)
        from .create import tensor, zeros

        if not data or all(isinstance(n, int) for n in data):
            return zeros(*(data or (0,)), **options)
        if len(data) > 1:
            raise TypeError(f"[Tensor] expected data, or whole numbers as a shape; got {len(data)} arguments")
        return tensor(data[0], dtypes.get_default_dtype(), **options)

    shape = property(lambda self: self.array.shape, doc="The sizes, a tuple.")
    ndim = property(lambda self: len(self.array.shape), doc="The number of dimensions.")
    dtype = property(lambda self: dtypes.BY_NUMPY[self.array.dtype], doc="The element type, e.g. ag.float32.")
    grad = property(attrgetter("_grad"), set_grad, doc="Where backward() adds up: None, or a tensor of the same shape.")
    is_leaf = property(lambda self: self.node is None, doc="Whether it was made by the user, not by a recorded op.")
    grad_fn = property(lambda self: self.node, doc="The node that recorded how it was computed, or None.")
    _version = property(lambda self: self.version[0], doc="How often its memory was changed in place.")
    itemsize = property(lambda self: self.array.dtype.itemsize, doc="Bytes an element.")
    nbytes = property(lambda self: self.array.size * self.array.dtype.itemsize, doc="Bytes of its elements.")

    @property
    def device(self) -> Device:
        """Where it lives."""
        return CPU if self.array.__class__ is ndarray else self.array.gpu.device

    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded. May be set on leaves of floating point."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if self.node is not None:
            if not value:
                raise RuntimeError("[requires_grad] only a leaf's flag can be changed; use detach() to cut history")
            return
        if value and not self.dtype.is_floating_point:
            raise RuntimeError(f"[requires_grad] only floating point tensors have gradients; got {self.dtype}")
        self._requires_grad = bool(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set requires_grad and return self."""
        self.requires_grad = requires_grad
        return self

    @property
    def data(self) -> Tensor:
        """The same memory without history and without version checks; `x.data = y` gives x the memory of y."""
        if state.autocast is not None:
            state.autocast.casts.pop(self, None)  # it may be written to, and no version will tell
        return rewrap(self.array, [0])

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"[data] expected a Tensor; got {type(value).__name__}")
        if self._requires_grad and not value.dtype.is_floating_point:
            raise TypeError(f"[data] this tensor requires grad, so its dtype must be floating point; got {value.dtype}")
        self.array, self.version, self.views = value.array, [self.version[0] + 1], None

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dimension."""
        return self.array.shape if dim is None else self.array.shape[dim]

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self.array.shape)

    def numel(self) -> int:
        """The number of elements."""
        return self.array.size

    def stride(self, dim: int | None = None) -> Any:
        """How many elements apart neighbours along each dimension are."""
        s = self.array.strides
        if self.array.__class__ is ndarray:
            s = tuple(n // self.array.dtype.itemsize for n in s)
        return s if dim is None else s[dim]

    def is_contiguous(self) -> bool:
        """Whether the elements lie in memory in order, without gaps."""
        data = self.array
        return bool(data.flags.c_contiguous) if data.__class__ is ndarray else data.is_contiguous()

    def is_floating_point(self) -> bool:
        """Whether the dtype is floating point."""
        return self.dtype.is_floating_point

    # -- the tape -----------------------------------------------------------------------------------

    def backward(self, gradient: Tensor | None = None, retain_graph: bool | None = None, create_graph: bool = False,
                 inputs: Any = None) -> None:  # fmt: skip
        """Add the gradient of this tensor (times `gradient`) into the .grad of the leaves it was computed from.

        See autograd.backward. RuntimeError for more than one element without `gradient`, or a freed graph.
        """
        backward(self, gradient, retain_graph, create_graph, inputs)

    def detach(self) -> Tensor:
        """The same memory without history."""
        return rewrap(self.array, self.version)

    def detach_(self) -> Tensor:
        """Forget this tensor's own history."""
        self.node, self._requires_grad = None, False
        return self

    def retain_grad(self) -> None:
        """Keep .grad for this tensor although it is not a leaf."""
        if not self._requires_grad:
            raise RuntimeError("[retain_grad] the tensor does not require grad")
        if self.node is None:
            return
        hooks = self._hook_list()
        if not any(isinstance(h, Keep) and h.tensor() is self for h in hooks):
            hooks.append(Keep(self))

    def register_hook(self, hook: Callable) -> RemovableHandle:
        """Call hook(gradient) when this tensor's gradient is computed; a returned tensor replaces it."""
        if not self._requires_grad:
            raise RuntimeError("[register_hook] the tensor does not require grad")
        hooks = self._hook_list()
        hook = distinct(hooks, hook)
        kept = sum(isinstance(h, Keep) for h in hooks)  # they stand last, and see what the others made of the gradient
        hooks.insert(len(hooks) - kept, hook)
        return RemovableHandle(hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable) -> RemovableHandle:
        """Call hook(self) when backward() has added to .grad; for leaves. Where each leaf's step of an optimizer fits.

        All leaves' gradients are added when the whole walk is done, so memory is not freed on the way.
        """
        if self.node is not None or not self._requires_grad:
            raise RuntimeError("[register_post_accumulate_grad_hook] expected a leaf that requires grad; use register_hook()")
        hooks, entry = self._hook_list(), Afterwards(hook)
        hooks.append(entry)
        return RemovableHandle(hooks, entry)

    def _hook_list(self) -> list:
        owner = self.node if self.node is not None else self
        if owner.hooks is None:
            owner.hooks = []
        return owner.hooks

    def owns_memory(self) -> bool:
        """Whether nothing else can see this tensor's memory."""
        data = self.array
        if getrefcount(data) > 3:  # its slot, our variable, getrefcount's argument
            return False
        if data.__class__ is not ndarray:
            return data.is_contiguous() and (data.pending is not None or getrefcount(data.storage) <= 2)
        base, flags = data.base, data.flags
        if base is None:
            return flags.owndata and flags.c_contiguous
        whole = base.__class__ is ndarray and base.flags.owndata and base.size == data.size and flags.c_contiguous
        return whole and getrefcount(base) <= 3

    def one(self) -> Tensor:
        """A one of this shape and dtype: where backward() starts. Short, because every backward pays it."""
        data = self.array
        if data.__class__ is not ndarray:
            return wrap(data.gpu.full(data.shape, 1, data.dtype))
        one = np.empty(data.shape, data.dtype)
        one.fill(1 if data.dtype.kind != "V" else _BFLOAT_ONE)
        return wrap(one)

    def accumulate(self, g: Tensor) -> None:
        """self += g, of the same shape, dtype and device, not recorded: what .grad does at every step."""
        data = self.array
        if data.__class__ is ndarray and data.flags.writeable:
            try:
                state.run(np.add, data, g.array, data)
            except TypeError:  # bfloat16, which NumPy does not add
                self.add_(g)
            else:
                self.version[0] += 1
        else:
            self.add_(g)

    def copied(self) -> Tensor:
        """A contiguous copy without history."""
        data = self.array
        return wrap(data.copy() if data.__class__ is ndarray else data.gpu.copy(data))

    # -- leaving the engine ---------------------------------------------------------------------------

    def numpy(self, *, force: bool = False) -> ndarray:
        """A NumPy array: on the CPU a view of the same memory. RuntimeError when it requires grad, except under no_grad.

        bfloat16, which NumPy has not, becomes a float32 copy. force: as detach().cpu().numpy().
        """
        if self._requires_grad and state.enabled and not force:
            raise RuntimeError("[numpy] the tensor requires grad and NumPy would lose the history; use .detach().numpy()")
        return self._values()

    def item(self) -> Any:
        """The single element as a Python number. RuntimeError when there is not exactly one."""
        if self.array.size != 1:
            raise RuntimeError(f"[item] only a tensor of one element is a number; got shape {self.shape}")
        return self._values().item()

    def tolist(self) -> Any:
        """Nested lists of Python numbers (one number for a 0-d tensor)."""
        return self._values().tolist()

    def _values(self) -> ndarray:
        """The elements as NumPy can calculate with them."""
        return dtypes.widened(self._host())

    def _host(self) -> ndarray:
        return self.array if self.array.__class__ is ndarray else self.array.gpu.download(self.array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> ndarray:
        array = self.numpy() if dtype is None else self.numpy().astype(dtype, copy=False)
        if copy is False and array is not self.array:
            raise ValueError(f"[array] copy=False, but {self.dtype} on {self.device} becomes {array.dtype} in NumPy by a copy")
        return array.copy() if copy and array is self.array else array

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        """The memory as a DLPack capsule, for np.from_dlpack(t), torch.from_dlpack(t), …

        BufferError when it is on wgpu, requires grad, or is of bfloat16, which NumPy has not.
        """
        if self.array.__class__ is not ndarray:
            raise BufferError(f"[dlpack] only CPU memory is shared; got a tensor on {self.device}. Move it with .cpu()")
        if self._requires_grad:
            raise BufferError("[dlpack] the tensor requires grad and its history would be lost; pass .detach()")
        if self.array.dtype.kind == "V":
            raise BufferError("[dlpack] NumPy, which shares the memory, has no bfloat16; pass .float()")
        asked = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return self.array.__dlpack__(**{k: v for k, v in asked.items() if v is not None})

    def __dlpack_device__(self) -> tuple[int, int]:
        """(1, 0): DLPack's number of the CPU. BufferError on wgpu, which DLPack has no number for."""
        if self.array.__class__ is not ndarray:
            raise BufferError(f"[dlpack] only CPU memory is shared; got a tensor on {self.device}. Move it with .cpu()")
        return self.array.__dlpack_device__()

    @classmethod
    def __torch_function__(cls, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """PyTorch's protocol: torch.f(our tensor) runs our function of that name. TypeError when there is none."""
        from .interop import twin_of

        options = {k: v for k, v in (kwargs or {}).items() if not k.startswith("_")}  # PyTorch's private ones, as _stacklevel
        return twin_of(func)(*args, **options)

    def __repr__(self) -> str:
        from .show import tensor_repr

        return tensor_repr(self)

    def __format__(self, spec: str) -> str:
        if self.array.shape == () and self.__class__ is Tensor:
            return format(self.item(), spec)
        return object.__format__(self, spec)  # TypeError for a spec: it says how one number is written

    def __bool__(self) -> bool:
        if self.array.size != 1:
            raise RuntimeError(f"[bool] the truth of a tensor of shape {self.shape} is ambiguous; use .any() or .all()")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.is_floating_point or self.array.size != 1:
            raise TypeError(f"[index] only an integer tensor of one element is an index; got {self.dtype} {self.shape}")
        return int(self.item())

    def __len__(self) -> int:
        if not self.array.shape:
            raise TypeError("[len] a 0-d tensor has no length")
        return self.array.shape[0]

    def __contains__(self, element: Any) -> bool:
        """Whether any element equals `element`, a number or a tensor that broadcasts. TypeError for anything else."""
        found = self == element
        if not isinstance(found, Tensor):
            raise TypeError(f"[in] a tensor contains numbers; asked for a {type(element).__name__}")
        return bool(found.any())

    def __iter__(self) -> Iterator[Tensor]:
        if not self.array.shape:
            raise TypeError("[iter] a 0-d tensor cannot be iterated")
        return iter([self[i] for i in range(self.array.shape[0])])

    __hash__ = object.__hash__  # __eq__ is elementwise: identity is what dictionaries need

    def __reduce_ex__(self, protocol: Any) -> tuple:
        from .create import rebuild

        made = (type(self), self._host().copy(), str(self.device), self._requires_grad and self.is_leaf)
        return rebuild, made, self.__dict__ if self.__class__ is Tensor and self.__dict__ else None

    def __copy__(self) -> Tensor:
        """Another tensor on the same memory, with the same history."""
        twin = rewrap(self.array, self.version)
        twin.__class__, twin.grad = type(self), self.grad
        twin.node, twin._requires_grad, twin.views = self.node, self._requires_grad, self.views
        return twin

    def __deepcopy__(self, memo: dict) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError("[deepcopy] only leaves can be copied deeply; detach() the tensor first")
        twin = rewrap(self.detach().clone().array, [0])
        twin.__class__, twin._requires_grad = type(self), self._requires_grad
        memo[id(self)] = twin
        if self.__class__ is Tensor:  # as in PyTorch, a Parameter's gradient and attributes stay behind
            twin.__dict__.update(deepcopy(self.__dict__, memo))
            twin.grad = None if self.grad is None else self.grad.detach().clone()
        return twin


_new = object.__new__
_BFLOAT_ONE = dtypes.converted(np.ones((), np.float32), dtypes.bfloat16.numpy)


def wrap(data: Any) -> Tensor:
    """A fresh tensor around an array of either device."""
    t = _new(Tensor)
    if data.__class__ is not ndarray and isinstance(data, np.generic):  # NumPy makes 0-d results scalars
        data = np.asarray(data)
    t.array = data
    t._grad = t.node = t.views = t.hooks = None
    t.version = [0]
    t._requires_grad = False
    return t


def rewrap(data: Any, version: list[int], node: Node | None = None, index: int = 0) -> Tensor:
    """A new tensor around memory that another one has too: it shares the version counter.

    With a node it is that node's output number `index`, so that a recorded gradient can go through it.
    """
    t = wrap(data)
    t.version = version
    if node is not None and state.enabled:
        t.node = node if node.op.outputs == 1 else make_pick(node, index, data)
        t._requires_grad = True
    return t
