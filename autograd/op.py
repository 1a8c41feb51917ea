"""What an operation is, and the one way to run it: choose the device, compute, record."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from . import dtypes, shapes
from .aliasing import track_view
from .blocks import SHARED, mapped
from .cast import listed
from .create import from_numpy
from .errors import LinAlgError, saying_what_came
from .grad_mode import state
from .tape import make_node, make_pick
from .tensor import Tensor, rewrap, wrap
from .webgpu.layout import INDEX_LIMIT

REGISTRY: dict[str, type[Op]] = {}

# Ops that run on the host on purpose although their tensors are on the GPU: name -> why.
HOST_OPS: dict[str, str] = {}

NO_ATTRS: dict = {}
_KINDS = ((TypeError, TypeError), (np.linalg.LinAlgError, LinAlgError))  # NumPy's error, ours; any other is a ValueError
_OPERAND = (Tensor, bool, int, float, np.number, np.bool_)


class Op:
    """An operation: its NumPy function, its kernel's launcher, its gradient formula. Subclasses hold no state.

    numpy: f(*arrays, **attrs) -> array, or a tuple when outputs > 1
    wgpu: a launcher with the same signature on webgpu Arrays, or None: not on the GPU, and calling it says so
    saves: which inputs the formula needs: for each input, the inputs whose gradients need it
    keeps: whether the formula needs the outputs
    backward: (ctx, dy) -> the gradient of each input, written in Tensor operations, so that it can be differentiated
    costly: whether an element takes so long that threads share large arrays
    booleans: whether a function of one tensor takes them
    fused_backward: the same numbers faster, used when nobody asked for a graph of the gradient (default: backward)
    """

    name = ""
    numpy: Callable
    wgpu: Callable | None = None
    saves: tuple[tuple[int, ...], ...] = ()
    keeps = False
    outputs = 1
    view = False
    costly = False
    booleans = True
    differentiable = True
    has_fused = False
    rewrap = staticmethod(rewrap)
    backward: Callable
    fused_backward: Callable

    @classmethod
    def fit(cls, g: Tensor, shape: tuple) -> Tensor:
        """Sum a gradient back to the shape of an input that was broadcast."""
        if not shapes.expandable(shape, g.shape):
            raise RuntimeError(f"[{cls.name}] its gradient formula gave shape {g.shape} for an input of shape {shape}")
        return g.sum_to(shape)


def register(cls: type[Op]) -> type[Op]:
    """Class decorator: name the op after its class (LogSoftmax -> log_softmax) and enter it in the registry."""
    cls.name = cls.__dict__.get("name") or re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
    if cls.name in REGISTRY:
        raise ValueError(f"op {cls.name} is registered twice")
    cls.has_fused = hasattr(cls, "fused_backward")
    if cls.differentiable and not cls.has_fused:
        cls.fused_backward = cls.backward
    REGISTRY[cls.name] = cls
    return cls


def public(function: Callable, name: str | None = None, method: bool = True) -> Callable:
    """Make a function public as ag.<name> and, with `method`, as Tensor.<name>."""
    name = name or function.__name__
    function = listed(function, name)
    if function.__module__ == __name__:  # unary() and binary() made it, and it looks at what it is given
        function.__module__ = "autograd"  # where pickle finds it
    # Whoever imports the function it is, and Tensor's method, do without the words: they are called most.
    PUBLIC[name] = function if function.__module__ == "autograd" else saying_what_came(function, name)
    if method:
        setattr(Tensor, name, function)
    return function


PUBLIC: dict[str, Callable] = {}


def apply(op: type[Op], *inputs: Any, **attrs: Any) -> Any:
    """Run `op` on tensors (and plain numbers, or None), record it when a gradient may be asked for.

    Returns a Tensor, or a tuple of them for an op with several outputs. RuntimeError for tensors on different
    devices, NotImplementedError for an op without a kernel, ValueError for shapes that do not fit.
    """
    x = inputs[0]
    if len(inputs) == 1 and x.array.__class__ is ndarray and op.outputs == 1:
        data = x.array
        if op.view:  # strides only: no arithmetic that could warn
            y = wrap(op.numpy(data, **attrs))
            track_view(y, x, op, attrs)
        else:
            compute = _compute if data.dtype.kind != "V" else _compute_wide
            y = wrap(compute(op, (data,), attrs))
        if x._requires_grad and op.differentiable and state.enabled:
            record_one(op, x, y, attrs)
        return y
    return _apply_many(op, inputs, attrs)


def _apply_many(op: type[Op], inputs: tuple, attrs: dict) -> Any:
    arrays: list = []
    first: Any = None
    gpu = None
    tracked, compute = False, _compute
    for x in inputs:
        if not isinstance(x, Tensor):
            arrays.append(x)
            continue
        data = x.array
        arrays.append(data)
        if data.dtype.kind == "V":
            compute = _compute_wide
        where = None if data.__class__ is ndarray else data.gpu
        if first is None:
            first, gpu = x, where
        elif where is not gpu:
            raise _mixed(op, inputs)
        tracked = tracked or x._requires_grad
    out = compute(op, arrays, attrs) if gpu is None else _launch(op, arrays, attrs)
    if op.outputs > 1:
        results = tuple([wrap(o) for o in out])
    else:
        results = (wrap(out),)
        if op.view:
            track_view(results[0], first, op, attrs)
    if tracked and op.differentiable and state.enabled:
        record(op, inputs, attrs, results)
    return results if op.outputs > 1 else results[0]


def _launch(op: type[Op], arrays: Any, attrs: dict) -> Any:
    if op.wgpu is None:
        raise NotImplementedError(
            f'[{op.name}] has no WGSL kernel; move its inputs with .to("cpu"). `make ops` lists what is there'
        )
    for x in arrays:
        if getattr(x, "size", 0) >= INDEX_LIMIT and not op.view:  # as expand() can make it without memory
            raise ValueError(f"[{op.name}] kernels index with 32 bits; shape {x.shape} has {x.size:,} elements. Use parts of it")
    return op.wgpu(*arrays, **attrs)


def _compute(op: type[Op], arrays: Any, attrs: dict) -> Any:
    try:
        return state.run(op.numpy, *arrays, **attrs)
    except (ValueError, TypeError) as error:  # in the op's name
        if error.args and str(error.args[0]).startswith("["):
            raise
        given = " and ".join(f"{a.shape} {a.dtype}" for a in arrays if a.__class__ is ndarray)
        kind = next((k for c, k in _KINDS if isinstance(error, c)), ValueError)
        raise kind(f"[{op.name}] {error}; got {given}") from None


def _compute_wide(op: type[Op], arrays: Any, attrs: dict) -> Any:
    """An op on bfloat16, which NumPy moves and does not calculate with: in float32, and rounded once."""
    kind = dtypes.bfloat16.numpy
    if op.view or op.name in ("move", "clone"):
        return op.numpy(*arrays, **attrs)
    asked = attrs.get("dtype", kind)
    if op.name == "cast":
        return state.run(dtypes.converted, arrays[0], asked)
    if asked == kind and "dtype" in attrs:
        attrs = {**attrs, "dtype": np.dtype(np.float32)}
    out = _compute(op, [dtypes.widened(a) for a in arrays], attrs)
    if asked != kind:
        return out
    out = out if op.outputs > 1 else (out,)
    results = [dtypes.converted(y, kind) if getattr(y, "dtype", None) == np.float32 else y for y in out]
    return tuple(results) if op.outputs > 1 else results[0]


def _mixed(op: type[Op], inputs: tuple) -> RuntimeError:
    named = ", ".join(dict.fromkeys(str(x.device) for x in inputs if isinstance(x, Tensor)))
    return RuntimeError(f"[{op.name}] all tensors must be on one device; got {named}. Move them with .to(device)")


def record(op: type[Op], inputs: tuple, attrs: dict, results: tuple) -> None:
    """Put the op on the tape: tie its outputs to a new Node that keeps what the formula needs."""
    edges = tuple([(x.node or x) if isinstance(x, Tensor) and x._requires_grad else None for x in inputs])
    data = results[0].array
    node = make_node(op, edges, attrs, data)
    if data.__class__ is not ndarray:
        node.gpu = data.gpu
    if op.saves:
        needed = [any([edges[j] is not None for j in users]) for users in op.saves[: len(inputs)]]
        node.saved = tuple([x if keep else None for x, keep in zip(inputs, needed, strict=True)])
        node.versions = tuple([x.version[0] if isinstance(x, Tensor) else None for x in node.saved])
    if op.keeps:
        node.kept = tuple([(r.array, r.version, r.version[0]) for r in results])
    for i, r in enumerate(results):
        if r.array.dtype.kind in "fV":
            r.node = node if op.outputs == 1 else make_pick(node, i, r.array)
            r._requires_grad = True


def record_one(op: type[Op], x: Tensor, y: Tensor, attrs: dict) -> None:
    """The short form of record() for one input that requires grad and one output."""
    if y.array.dtype.kind not in "fV":
        return
    y.node = node = make_node(op, (x.node or x,), attrs, y.array)
    y._requires_grad = True
    if y.array.__class__ is not ndarray:
        node.gpu = y.array.gpu
    if op.saves:
        node.saved, node.versions = (x,), (x.version[0],)
    if op.keeps:
        node.kept = ((y.array, y.version, y.version[0]),)


def record_two(op: type[Op], a: Tensor, b: Tensor, y: Tensor, gpu: Any) -> None:
    """The short form of record() for two inputs of which each is kept for the other's gradient, or none is."""
    edge_a = (a.node or a) if a._requires_grad else None
    edge_b = (b.node or b) if b._requires_grad else None
    y.node = node = make_node(op, (edge_a, edge_b), NO_ATTRS, y.array)
    y._requires_grad, node.gpu = True, gpu
    if op.saves:
        keep_a, keep_b = edge_b is not None, edge_a is not None
        node.saved = (a if keep_a else None, b if keep_b else None)
        node.versions = (a.version[0] if keep_a else None, b.version[0] if keep_b else None)


def unary(op: type[Op], floating: bool = True) -> Callable:
    """The function x -> op(x), on a short path for floating point tensors.

    floating: integers are converted to the default dtype first, as PyTorch does for mathematical functions.
    """
    compute_numpy, recorded = op.numpy, op.differentiable
    large = SHARED if op.costly else sys.maxsize

    def function(input: Tensor) -> Tensor:
        if not isinstance(input, Tensor):
            raise TypeError(f"[{op.name}] expected a Tensor; got {type(input).__name__}")
        data = input.array
        if data.dtype.kind != "f":
            if not op.booleans and data.dtype.kind == "b":
                raise TypeError(f"[{op.name}] is a function of numbers; got booleans. Use ~x, or convert with .int() first")
            return apply(op, input.to(dtypes.get_default_dtype()) if floating and data.dtype.kind != "V" else input)
        if data.__class__ is not ndarray:
            y = wrap(_launch(op, (data,), NO_ATTRS))
        else:
            y = wrap(state.run(compute_numpy, data) if data.size < large else state.run(mapped, compute_numpy, data))
        if recorded and input._requires_grad and state.enabled:
            record_one(op, input, y, NO_ATTRS)
        return y

    return _named(function, op)


def binary(op: type[Op], check: Callable | None = None, floats: bool = True) -> Callable:
    """The function (a, b) -> op(a, b) with broadcasting and promotion, on a short path for equal dtypes.

    `check(op, a, b)` may return other operands before they are promoted (integer division becomes floating point).
    floats: whether it is a function of floating point; `check` says so in its words where not.
    function.operator answers NotImplemented to foreign operands, as Python's operators must; function itself raises.
    """
    compute_numpy, recorded = op.numpy, op.differentiable
    short = op.saves in ((), ((1,), (0,))) and not op.keeps

    def build(strict: bool) -> Callable:
        def function(input: Any, other: Any) -> Tensor:
            if not (isinstance(input, Tensor) and isinstance(other, Tensor)):
                number = other if isinstance(input, Tensor) else input
                if floats and (number.__class__ is float or number.__class__ is int):
                    y = _with_number(op, input, other)
                    if y is not None:
                        return y
                return _general(op, input, other, check, strict)
            x, y = input.array, other.array
            if x.dtype is not y.dtype or not (check is None or (floats and x.dtype.kind == "f")):
                return _general(op, input, other, check, strict)
            gpu = None
            try:
                if x.__class__ is ndarray and y.__class__ is ndarray:
                    out = wrap(state.run(compute_numpy, x, y))
                elif x.__class__ is y.__class__ and x.gpu is y.gpu and op.wgpu is not None:
                    gpu = x.gpu
                    out = wrap(op.wgpu(x, y))
                else:
                    return _general(op, input, other, check, strict)
            except ValueError:
                shapes.broadcast((x.shape, y.shape), op.name)
                raise
            except TypeError:
                if x.dtype.kind == "V":  # bfloat16, which NumPy does not calculate with
                    return _general(op, input, other, check, strict)
                raise
            if recorded and (input._requires_grad or other._requires_grad) and state.enabled:
                if short:
                    record_two(op, input, other, out, gpu)
                else:
                    record(op, (input, other), NO_ATTRS, (out,))
            return out

        return _named(function, op)

    function = build(True)
    function.operator = build(False)  # type: ignore[attr-defined]
    return function


def _with_number(op: type[Op], a: Any, b: Any) -> Tensor | None:
    """A floating point tensor and a Python number, which takes the tensor's dtype; None for any other pair."""
    x = a if isinstance(a, Tensor) else b
    if not isinstance(x, Tensor) or x.array.dtype.kind != "f":
        return None
    a, b = (a, float(b)) if x is a else (float(a), b)
    p, q = (a.array, b) if x is a else (a, b.array)
    gpu = None if x.array.__class__ is ndarray else x.array.gpu
    if gpu is not None and op.wgpu is None:
        return None
    half = x.array.dtype.itemsize == 2
    if half and gpu is None and op.differentiable:  # 65536 and 1e-8 are no float16 numbers: only the result is rounded
        p, q = (np.float32(v) if v.__class__ is float else v for v in (p, q))
        y = wrap(state.run(dtypes.converted, state.run(op.numpy, p, q), x.array.dtype))
    else:
        if half and not op.differentiable:  # a comparison is with the nearest number that the tensor can hold
            p, q = (dtypes.nearest(v, x.dtype) if v.__class__ is float else v for v in (p, q))
        y = wrap(state.run(op.numpy, p, q) if gpu is None else op.wgpu(p, q))  # type: ignore[misc]
    if op.differentiable and x._requires_grad and state.enabled:
        record(op, (a, b), NO_ATTRS, (y,))
    return y


def _general(op: type[Op], a: Any, b: Any, check: Callable | None, strict: bool) -> Tensor:
    """Any two operands: promote them, check their shapes, run."""
    a, b = (from_numpy(x) if x.__class__ is ndarray else x for x in (a, b))  # beside a tensor, as PyTorch does
    for x in (a, b):
        if not isinstance(x, _OPERAND):
            if strict:
                raise TypeError(f"[{op.name}] operands are tensors and numbers; got {type(x).__name__}")
            return NotImplemented
    if not (isinstance(a, Tensor) or isinstance(b, Tensor)):
        raise TypeError(f"[{op.name}] at least one operand must be a Tensor; got two numbers")
    a, b = (x.item() if isinstance(x, np.generic) else x for x in (a, b))
    if check is not None:
        a, b = check(op, a, b)
    both = isinstance(a, Tensor) and isinstance(b, Tensor)
    if both and op.differentiable and not (a.ndim and b.ndim) and (a.dtype in dtypes.SHORT) != (b.dtype in dtypes.SHORT):
        short = dtypes.result_type(a, b)
        if short in dtypes.SHORT:  # it may not hold the number that a 0-d tensor is: only the result is rounded
            return _general(op, a.to(dtypes.float32), b.to(dtypes.float32), None, strict).to(short)
    a, b = promoted(a, b)
    if both:
        if a.shape != b.shape:
            shapes.broadcast((a.shape, b.shape), op.name)
        if a.device != b.device:  # a 0-d tensor on the CPU is a number that any device takes, as in PyTorch
            if not b.ndim and b.array.__class__ is ndarray:
                b = b.to(a.device)
            elif not a.ndim and a.array.__class__ is ndarray:
                a = a.to(b.device)
    return apply(op, a, b)


def promoted(*operands: Any) -> tuple:
    """The operands in their common dtype: tensors cast, numbers made numbers of that kind."""
    dtype = dtypes.promote([dtypes._weighted(x) for x in operands])
    kind = (bool, int, float)[dtype.rank]
    return tuple(x.to(dtype) if isinstance(x, Tensor) else kind(x) for x in operands)


def _named(function: Callable, op: type[Op]) -> Callable:
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.__doc__
    return function


def coverage() -> str:
    """The registry as a table (`make ops`): op, kinds of kernel, kinds of gradient."""
    rows = [("op", "cpu", "wgpu", "gradient")]
    for name, op in sorted(REGISTRY.items()):
        gpu = "kernel" if op.wgpu else f"host: {HOST_OPS[name]}" if name in HOST_OPS else "missing"
        if op.view:
            gpu = "view"
        gradient = "-" if not op.differentiable else "fused + formula" if op.has_fused else "formula"
        rows.append((name, "numpy", gpu, gradient))
    widths = [max(len(r[i]) for r in rows) for i in range(4)]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows]
    missing = sum(r[2] == "missing" for r in rows)
    return "\n".join([*lines, f"{len(REGISTRY)} primitives, {len(PUBLIC)} public functions, {missing} without a kernel"])
