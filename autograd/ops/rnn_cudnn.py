"""TensorFlow's CudnnRNNV3 family: stacked recurrent layers whose weights are one flat vector. Layout: autograd/rnn.py."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import create
from ..grad_mode import enable_grad
from ..tape import grad
from ..tensor import Tensor
from .rnn import layer, on_host
from .rnn_composite import check_floats, check_whole, on_device
from .views import cat, stack

MODES = {"rnn_relu": ("rnn", 1), "rnn_tanh": ("rnn", 1), "lstm": ("lstm", 4), "gru": ("gru", 3)}
INPUT_MODES = ("linear_input", "skip_input", "auto_select")
DIRECTIONS = {"unidirectional": 1, "bidirectional": 2}


@dataclass(frozen=True)
class Layout:
    """The sizes of a stack and where its weights lie in the flat vector."""

    mode: str
    layers: int
    units: int
    inputs: int
    directions: int
    projection: int
    skip: bool

    @property
    def gates(self) -> int:
        """Gates of the cell."""
        return MODES[self.mode][1]

    @property
    def width(self) -> int:
        """How wide h is."""
        return self.projection or self.units

    def shapes(self, number: int) -> list[tuple[int, int]]:
        """Of pseudo-layer `number` = layer * directions + direction: W [G H, in], R [G H, h] and a projection [P, H]."""
        rows, below = self.gates * self.units, self.directions * self.width
        first = number < self.directions
        found = [] if first and self.skip else [(rows, self.inputs if first else below)]
        found.append((rows, self.width))
        return found + ([(self.projection, self.units)] if self.projection else [])

    @property
    def count(self) -> int:
        """Pseudo-layers."""
        return self.layers * self.directions

    @property
    def size(self) -> int:
        """Numbers in the flat vector: all weights, then for every pseudo-layer b_W and b_R, G H each."""
        weights = sum(math.prod(shape) for k in range(self.count) for shape in self.shapes(k))
        return weights + self.count * 2 * self.gates * self.units


def _one_of(op: str, name: str, value: str, known: Any) -> None:
    if value not in known:
        raise ValueError(f"[{op}] {name} is one of {', '.join(known)}; got {value!r}")


def layout_of(op: str, num_layers: int, num_units: int, input_size: int, rnn_mode: str = "lstm",
              input_mode: str = "linear_input", direction: str = "unidirectional", num_proj: int = 0) -> Layout:  # fmt: skip
    """The Layout of these attributes, checked."""
    _one_of(op, "rnn_mode", rnn_mode, MODES)
    _one_of(op, "input_mode", input_mode, INPUT_MODES)
    _one_of(op, "direction", direction, DIRECTIONS)
    for name, value, least in (
        ("num_layers", num_layers, 1),
        ("num_units", num_units, 1),
        ("input_size", input_size, 1),
        ("num_proj", num_proj, 0),
    ):
        check_whole(op, name, value)
        if value < least:
            raise ValueError(f"[{op}] {name} must be at least {least}; got {value}")
    if num_proj and (rnn_mode != "lstm" or num_proj > num_units):
        raise ValueError(
            f"[{op}] a projection needs rnn_mode lstm and num_proj <= num_units = {num_units}; got {rnn_mode}, {num_proj}"
        )
    if input_mode == "skip_input" and input_size != num_units:
        raise ValueError(f"[{op}] skip_input needs input_size = num_units = {num_units}; got {input_size}")
    skip = input_mode == "skip_input" or (input_mode == "auto_select" and input_size == num_units)
    return Layout(rnn_mode, num_layers, num_units, input_size, DIRECTIONS[direction], num_proj, skip)


def split_params(op: str, params: Tensor, plan: Layout) -> list[dict]:
    """Views of the flat vector for every pseudo-layer: w_ih (None: skipped), w_hh, w_hr, b_ih, b_hh."""
    if not isinstance(params, Tensor):
        raise TypeError(f"[{op}] params must be a Tensor; got {type(params).__name__}")
    if params.ndim != 1 or params.shape[0] != plan.size:
        raise ValueError(f"[{op}] params must be a vector of params_size = {plan.size}; got {params.shape}")
    found, start, rows = [], 0, plan.gates * plan.units
    for k in range(plan.count):
        views = []
        for shape in plan.shapes(k):
            views.append(params[start : start + math.prod(shape)].reshape(*shape))
            start += math.prod(shape)
        w_ih = None if k < plan.directions and plan.skip else views.pop(0)
        found.append({"w_ih": w_ih, "w_hh": views.pop(0), "w_hr": views.pop(0) if views else None})
    for entry in found:
        entry["b_ih"], entry["b_hh"] = params[start : start + rows], params[start + rows : start + 2 * rows]
        start += 2 * rows
    return found


def params_size(num_layers: int, num_units: int, input_size: int, *, rnn_mode: str = "lstm", input_mode: str = "linear_input",
                direction: str = "unidirectional", num_proj: int = 0) -> int:  # fmt: skip
    """How many numbers the flat vector has: sum over pseudo-layers of G H (in + h) + P H + 2 G H.

    skip_input leaves the first layer's G H in out. ValueError for sizes or attributes that do not fit.
    """
    return layout_of("cudnn_rnn_params_size", num_layers, num_units, input_size, rnn_mode, input_mode, direction, num_proj).size


def params_to_canonical(num_layers: int, num_units: int, input_size: int, params: Tensor, *, rnn_mode: str = "lstm",
                        input_mode: str = "linear_input", direction: str = "unidirectional",
                        num_proj: int = 0) -> tuple:  # fmt: skip
    """(weights, biases): lists of views, in the flat vector's order; for every pseudo-layer the G input matrices [H, in]
    (none where skipped), the G recurrent ones [H, h], a projection [P, H]; and 2 G biases [H], input ones first.
    """
    op = "cudnn_rnn_params_to_canonical"
    plan = layout_of(op, num_layers, num_units, input_size, rnn_mode, input_mode, direction, num_proj)
    weights: list[Tensor] = []
    biases: list[Tensor] = []
    for entry in split_params(op, params, plan):
        for name in ("w_ih", "w_hh"):
            if entry[name] is not None:
                weights += entry[name].chunk(plan.gates, 0)
        weights += [entry["w_hr"]] if entry["w_hr"] is not None else []
        biases += [*entry["b_ih"].chunk(plan.gates, 0), *entry["b_hh"].chunk(plan.gates, 0)]
    return weights, biases


def canonical_to_params(num_layers: int, num_units: int, input_size: int, weights: Any, biases: Any, *, rnn_mode: str = "lstm",
                        input_mode: str = "linear_input", direction: str = "unidirectional",
                        num_proj: int = 0) -> Tensor:  # fmt: skip
    """Undo params_to_canonical, bit for bit. ValueError for a number or a shape of weights or biases that does not fit."""
    op = "cudnn_rnn_canonical_to_params"
    plan = layout_of(op, num_layers, num_units, input_size, rnn_mode, input_mode, direction, num_proj)
    shapes: list[tuple] = []
    for k in range(plan.count):
        for rows, columns in plan.shapes(k):
            is_projection = plan.projection and (rows, columns) == plan.shapes(k)[-1]
            shapes += [(rows, columns)] if is_projection else [(plan.units, columns)] * plan.gates
    wanted = {"weights": (weights, shapes), "biases": (biases, [(plan.units,)] * (2 * plan.gates * plan.count))}
    for name, (given, expected) in wanted.items():
        if len(given) != len(expected):
            raise ValueError(f"[{op}] expected {len(expected)} {name}; got {len(given)}")
        for i, (t, shape) in enumerate(zip(given, expected, strict=True)):
            if not isinstance(t, Tensor):
                raise TypeError(f"[{op}] {name}[{i}] must be a Tensor; got {type(t).__name__}")
            if t.shape != shape:
                raise ValueError(f"[{op}] {name}[{i}] must have shape {shape}; got {t.shape}")
    return cat([t.reshape(-1) for t in (*weights, *biases)])


class _Reserve:
    """What a forward call leaves for its backward: who it was, its inputs and outputs, and the masks that it drew."""

    def __init__(self, key: tuple, masks: list, *tensors: Tensor | None):
        self.key, self.masks = key, masks
        self.kept = [(t.detach(), t.version[0]) for t in tensors if t is not None]

    def is_of(self, *tensors: Tensor | None) -> bool:
        """Whether these are the call's inputs and outputs, or hold the same, and none was changed in place since."""
        given = [t for t in tensors if t is not None]
        pairs = zip(given, self.kept, strict=True)
        return all(old.version[0] == version and _same(t, old) for t, (old, version) in pairs)


def _draw(plan: Layout, steps: int, batch: int, dropout: float, seeds: tuple[int, int], dtype: Any) -> list:
    """The masks between layers [T, B, D h], scaled by 1 / (1 - p), the same on every device for the same seeds."""
    if not dropout or plan.layers == 1:
        return []
    random = np.random.Generator(np.random.Philox(((seeds[0] & 0xFFFFFFFF) << 32) | (seeds[1] & 0xFFFFFFFF)))
    shape, keep = (steps, batch, plan.directions * plan.width), 1 - dropout
    scale = 1 / keep if keep else 0.0
    return [((random.random(shape, np.float32) < keep) * scale).astype(dtype) for _ in range(plan.layers - 1)]


def _stack_of_layers(
    op: str, plan: Layout, x: Tensor, h: Tensor, c: Tensor | None, params: Tensor, lengths: Any, masks: list
) -> tuple:
    """Time-major: (output [T, B, D h], output_h [L D, B, h], output_c or None)."""
    entries, cell = split_params(op, params, plan), MODES[plan.mode][0]
    act = "relu" if plan.mode == "rnn_relu" else "tanh"
    hs, cs = [], []
    for k in range(plan.layers):
        if k and masks:
            x = (x * on_device(masks[k - 1], x)).to(x.dtype)  # bfloat16 times float32 is float32
        outputs = []
        for i in range(k * plan.directions, (k + 1) * plan.directions):
            e = entries[i]
            back = i % plan.directions == 1
            y, hn, cn = layer(cell, x, h[i], e["w_ih"], e["w_hh"], e["b_ih"], e["b_hh"], None if c is None else c[i], e["w_hr"],
                              lengths=lengths, reverse=back, activation=act, op=op)  # fmt: skip
            outputs.append(y)
            hs.append(hn)
            cs.append(cn)
        x = outputs[0] if len(outputs) == 1 else cat(outputs, -1)
    return x, stack(hs), None if c is None else stack(cs)


def _checked(op: str, x: Tensor, h: Tensor, c: Tensor | None, lengths: Any, rnn_mode: str, input_mode: str, direction: str,
             dropout: float, num_proj: int, time_major: bool) -> tuple[Layout, Any]:  # fmt: skip
    """The plan of these shapes, and the lengths on the host; every rule with the name and both sizes."""
    _one_of(op, "direction", direction, DIRECTIONS)
    check_floats(op, input=x, input_h=h, input_c=c)
    if not 0 <= dropout <= 1:
        raise ValueError(f"[{op}] dropout is a probability; got {dropout}")
    for name, t in ("input", x), ("input_h", h):
        if t.ndim != 3:
            raise ValueError(f"[{op}] {name} must have 3 dimensions; got shape {t.shape}")
    if rnn_mode == "lstm" and (c is None or c.ndim != 3):
        raise ValueError(f"[{op}] input_c must have 3 dimensions for an lstm; got {None if c is None else c.shape}")
    batch = x.shape[1 if time_major else 0]
    stacked, rows = (h.shape[0], h.shape[1]) if time_major else (h.shape[1], h.shape[0])
    directions = DIRECTIONS[direction]
    layout = "[layers * directions, B, H]" if time_major else "[B, layers * directions, H]"
    if rows != batch or not stacked or stacked % directions:
        raise ValueError(f"[{op}] input_h must be {layout} with B = {batch} and {directions} direction(s); got {h.shape}")
    units = h.shape[2]
    if rnn_mode == "lstm":
        assert c is not None
        if not num_proj and c.shape != h.shape:
            raise ValueError(f"[{op}] input_h and input_c must have one shape without a projection; got {h.shape} and {c.shape}")
        if num_proj and (c.shape[:2] != h.shape[:2] or h.shape[2] != num_proj or num_proj > c.shape[2]):
            raise ValueError(
                f"[{op}] num_proj = {num_proj} must be input_h's width and at most input_c's; got {h.shape} and {c.shape}"
            )
        units = c.shape[2]
    plan = layout_of(op, stacked // directions, units, x.shape[2], rnn_mode, input_mode, direction, num_proj)
    return plan, None if lengths is None else on_host(lengths)


def cudnn_rnn(input: Tensor, input_h: Tensor, input_c: Tensor | None, params: Tensor, sequence_lengths: Any = None, *,
              rnn_mode: str = "lstm", input_mode: str = "linear_input", direction: str = "unidirectional", dropout: float = 0.0,
              seed: int = 0, seed2: int = 0, num_proj: int = 0,
              time_major: bool = True, is_training: bool = True) -> tuple:  # fmt: skip
    """CudnnRNNV3: (output, output_h, output_c, reserve_space). See autograd/rnn.py for layouts and formulas.

    input [T, B, I] and states [L D, B, H] (batch-major: [B, T, I] and [B, L D, H], as documented; TensorFlow's kernel
    reads those as if time-major), output [T, B, D H]. With num_proj = P, h is P wide and c is num_units wide. params:
    the flat vector. sequence_lengths: B numbers in 0 … T, in any order; behind a length output is 0 and nothing is read.
    output_c is a scalar 0 unless rnn_mode is lstm; input_c is then ignored. dropout acts between layers in training, the
    same for the same (seed, seed2) everywhere. reserve_space is for cudnn_rnn_backprop; a scalar when not training, and
    a gradient asked of such a result raises ValueError. ValueError for everything that does not fit.
    """
    op = "cudnn_rnn"
    c = input_c if rnn_mode == "lstm" else None
    plan, lengths = _checked(
        op, input, input_h, c, sequence_lengths, rnn_mode, input_mode, direction, dropout, num_proj, time_major
    )
    x, first_h, first_c = _time_first(time_major, input, input_h, c)
    for name, value in ("seed", seed), ("seed2", seed2):
        check_whole(op, name, value)
    masks = _draw(plan, len(x), x.shape[1], dropout, (seed, seed2), _mask_dtype(x)) if is_training else []
    y, hn, cn = _stack_of_layers(op, plan, x, first_h, first_c, params, lengths, masks)
    y, hn, cn = _time_first(time_major, y, hn, cn)
    if not is_training:
        for t in (y, hn, cn):
            if t is not None and t._requires_grad:
                t.register_hook(_refuse)
        return y, hn, _scalar(x) if cn is None else cn, _scalar(x)
    flat = np.concatenate([np.zeros(0, _mask_dtype(x)), *(m.ravel() for m in masks)])
    reserve = create.from_numpy(flat).to(x.device)
    attributes = (rnn_mode, input_mode, direction, dropout, seed, seed2, num_proj, time_major)
    key = (*_shapes(input, input_h, c, params, lengths), *attributes)
    reserve._call = _Reserve(key, masks, input, input_h, c, params, y, hn, cn)
    return y, hn, _scalar(x) if cn is None else cn, reserve


def _mask_dtype(x: Tensor) -> Any:
    return x.array.dtype if x.array.dtype.kind == "f" else np.dtype(np.float32)


def _shapes(x: Tensor, h: Tensor, c: Tensor | None, params: Tensor, lengths: Any) -> tuple:
    found = tuple(None if t is None else (t.shape, t.dtype.name) for t in (x, h, c, params))
    return (*found, None if lengths is None else tuple(lengths.tolist()))


def _scalar(x: Tensor) -> Tensor:
    return create.zeros((), dtype=x.dtype, device=x.device)


def _refuse(g: Tensor) -> None:
    raise ValueError("[cudnn_rnn] To use it in gradients, is_training must be set to True")


def _time_first(time_major: bool, *tensors: Tensor | None) -> tuple:
    """Exchange the first two dimensions, unless they are right already."""
    return tensors if time_major else tuple(None if t is None else t.transpose(0, 1) for t in tensors)


def cudnn_rnn_backprop(input: Tensor, input_h: Tensor, input_c: Tensor | None, params: Tensor, sequence_lengths: Any,
                       output: Tensor, output_h: Tensor, output_c: Tensor | None, output_backprop: Tensor,
                       output_h_backprop: Tensor, output_c_backprop: Tensor | None, reserve_space: Tensor, *,
                       rnn_mode: str = "lstm", input_mode: str = "linear_input", direction: str = "unidirectional",
                       dropout: float = 0.0, seed: int = 0, seed2: int = 0, num_proj: int = 0,
                       time_major: bool = True) -> tuple:  # fmt: skip
    """CudnnRNNBackpropV3: (input_backprop, input_h_backprop, input_c_backprop, params_backprop), in their inputs' shapes.

    reserve_space must come from the cudnn_rnn call that gave the outputs, with the same inputs, unchanged since, lengths
    and attributes: ValueError for any other. Nothing is drawn: the dropout masks are those of that call. The forward pass
    is computed again. output_backprop behind a length is not read. input_c_backprop is a scalar 0 unless rnn_mode is lstm.
    """
    op = "cudnn_rnn_backprop"
    lstm = rnn_mode == "lstm"
    c = input_c if lstm else None
    plan, lengths = _checked(
        op, input, input_h, c, sequence_lengths, rnn_mode, input_mode, direction, dropout, num_proj, time_major
    )
    pairs: list = [("output", output, output_backprop), ("output_h", output_h, output_h_backprop)]
    pairs += [("output_c", output_c, output_c_backprop)] if lstm else []
    wanted = ((*input.shape[:2], plan.directions * plan.width), input_h.shape, None if c is None else c.shape)
    for (name, t, dt), shape in zip(pairs, wanted, strict=False):
        for label, given in (name, t), (name + "_backprop", dt):
            if given is None or given.shape != shape:
                raise ValueError(f"[{op}] {label} must have shape {shape}; got {None if given is None else given.shape}")
            if given.dtype is not t.dtype:
                raise TypeError(f"[{op}] {label} must have {name}'s dtype {t.dtype}; got {given.dtype}")
    call = getattr(reserve_space, "_call", None)
    attributes = (rnn_mode, input_mode, direction, dropout, seed, seed2, num_proj, time_major)
    tensors = (input, input_h, c, params, output, output_h, output_c if lstm else None)
    if call is None or call.key != (*_shapes(input, input_h, c, params, lengths), *attributes) or not call.is_of(*tensors):
        raise ValueError(f"[{op}] reserve_space is not that of the cudnn_rnn call with these inputs, attributes and outputs")
    with enable_grad():
        leaves: Any = [t if t is None else t.detach().requires_grad_()
                  for t in (input, input_h, c, params)]  # fmt: skip
        x, h, cell = _time_first(time_major, *leaves[:3])
        outputs = _time_first(time_major, *_stack_of_layers(op, plan, x, h, cell, leaves[3], lengths, call.masks))
    given = [dt for _, _, dt in pairs]
    live = [t for t in leaves if t is not None]
    found = iter(grad([y for y in outputs if y is not None], live, given))
    dx, dh, dc, dp = (None if t is None else next(found) for t in leaves)
    return dx, dh, _scalar(input) if dc is None else dc, dp


def _same(t: Tensor, kept: Tensor) -> bool:
    """Whether two tensors share their data, or hold the same values."""
    if t.array is kept.array:
        return True
    return bool(np.array_equal(t.detach().cpu().numpy(), kept.cpu().numpy(), equal_nan=True))
