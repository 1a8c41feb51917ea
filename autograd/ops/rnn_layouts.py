"""How each system lays a recurrent layer's weights out, read into one form and written from it. Table: autograd/rnn.py.

The one form is PyTorch's, gate by gate: W [G, H, in], R [G, H, h], two biases [G, H] or None, gates in the order r, z, n
or i, f, g, o, z multiplying the old state. Reading and writing permute, transpose and negate: bits are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from ..create import from_numpy
from .rnn_cudnn import layout_of, split_params


@dataclass
class Part:
    """One direction of one layer. w None: the input itself enters every gate."""

    w: ndarray | None
    r: ndarray
    b: ndarray | None = None
    c: ndarray | None = None  # the recurrent side's bias
    projection: ndarray | None = None


@dataclass
class Form:
    """All layers. family: "after" or "before" (where the reset gate acts), or "lstm"."""

    family: str
    parts: list[Part]
    directions: int = 1


def _fail(text: str) -> ValueError:
    return ValueError(f"[convert] {text}")


def host(x: Any, name: str) -> ndarray:
    """Values as a NumPy array of at least one dimension; bfloat16 as float32."""
    if hasattr(x, "detach"):  # a Tensor, ours or PyTorch's
        x = x.detach().cpu()
        x = (x.float() if dtype_name(x) == "bfloat16" else x).numpy()
    if not isinstance(x, ndarray):
        raise TypeError(f"[convert] {name} must be an array or a Tensor; got {type(x).__name__}")
    if not x.ndim:
        raise _fail(f"{name} must be a vector or a matrix; got shape ()")
    return x


def dtype_name(x: Any) -> str:
    """float32, bfloat16, … of an array or a Tensor, ours or PyTorch's."""
    return str(x.dtype).rpartition(".")[2]


def _named(weights: Any, source: str, names: tuple) -> list[ndarray]:
    if not isinstance(weights, Mapping) or set(weights) != set(names):
        got = sorted(weights) if isinstance(weights, Mapping) else type(weights).__name__
        raise _fail(f"{source} weights are a dict with {', '.join(names)}; got {got}")
    return [host(weights[name], name) for name in names]


def _expect(source: str, shapes: dict) -> None:
    for name, (a, wanted) in shapes.items():
        if a.shape != wanted:
            raise _fail(f"{source}: {name} must have shape {wanted}; got {a.shape}")


def _gates(a: ndarray, count: int) -> ndarray:
    """Columns [N, G U] as [G, U, N]; a bias [G U] as [G, U]."""
    return np.stack(np.split(a.T if a.ndim == 2 else a, count))


def _columns(gates: ndarray) -> ndarray:
    """Undo _gates."""
    return np.concatenate(list(gates)).T if gates.ndim == 3 else gates.reshape(-1)


SWAP = [1, 0, 2]  # r, z, n <-> z, r, n


# -- readers --------------------------------------------------------------------------------------------


def read_tf_block(weights: Any) -> Form:
    """w_ru [I+C, 2C], w_c [I+C, C], b_ru [2C], b_c [C]; rows x then h, gates r, u | c."""
    w_ru, w_c, b_ru, b_c = _named(weights, "tf_block", ("w_ru", "w_c", "b_ru", "b_c"))
    units, rows = b_c.shape[0], w_c.shape[0]
    if rows <= units:
        raise _fail(f"tf_block: w_c must be [I + C, C] with C = {units}; got {w_c.shape}")
    _expect("tf_block", {"w_ru": (w_ru, (rows, 2 * units)), "w_c": (w_c, (rows, units)), "b_ru": (b_ru, (2 * units,))})
    both = np.concatenate([_gates(w_ru, 2), _gates(w_c, 1)])
    return Form(
        "before", [Part(both[:, :, : rows - units], both[:, :, rows - units :], np.concatenate([_gates(b_ru, 2), b_c[None]]))]
    )


def read_keras(weights: Any) -> Form:
    """[kernel [I, G U], recurrent [U, G U], bias] of a layer, or twice that of Bidirectional. The bias tells the family."""
    arrays = [host(a, f"weights[{i}]") for i, a in enumerate(weights)]
    if len(arrays) not in (2, 3, 4, 6):
        raise _fail(
            f"keras weights are [kernel, recurrent_kernel(, bias)], or twice that for Bidirectional; got {len(arrays)} arrays"
        )
    directions = 1 if len(arrays) < 4 else 2
    each = len(arrays) // directions
    shapes = [a.shape for a in arrays]
    if directions == 2 and shapes[:each] != shapes[each:]:
        raise _fail(f"keras: both directions of a Bidirectional must have the same shapes; got {shapes}")
    parts, family = [], ""
    for k in range(directions):
        kernel, recurrent, *bias = arrays[k * each : (k + 1) * each]
        if recurrent.ndim != 2 or not len(recurrent):
            raise _fail(f"keras: recurrent_kernel must be [U, G U]; got {recurrent.shape}")
        units = recurrent.shape[0]
        count = recurrent.shape[1] // units
        _expect(
            "keras",
            {"recurrent_kernel": (recurrent, (units, count * units)), "kernel": (kernel, (kernel.shape[0], count * units))},
        )
        if count not in (3, 4):
            raise _fail(f"keras: a GRU has 3 gates and an LSTM 4; got {count} in recurrent_kernel {recurrent.shape}")
        order = SWAP if count == 3 else [0, 1, 2, 3]
        b = c = None
        if bias:
            after = count == 3 and bias[0].ndim == 2
            _expect("keras", {"bias": (bias[0], (2, 3 * units) if after else (count * units,))})
            rows = bias[0] if after else bias[0][None]
            b, c = (_gates(row, count)[order] for row in rows) if after else (_gates(rows[0], count)[order], None)
            family = "lstm" if count == 4 else "after" if after else "before"
        elif count == 4:
            family = "lstm"
        parts.append(Part(_gates(kernel, count)[order], _gates(recurrent, count)[order], b, c))
    return Form(family, parts, directions)


def read_cudnn_gru(weights: Any) -> Form:
    """CuDNNGRU's [kernel [I, 3U], recurrent [U, 3U], bias [6U]]: every block is cuDNN's [U, I] memory called [I, U]."""
    arrays = [host(a, f"weights[{i}]") for i, a in enumerate(weights)]
    if len(arrays) != 3:
        raise _fail(f"cudnn_gru weights are [kernel, recurrent_kernel, bias]; got {len(arrays)} arrays")
    kernel, recurrent, bias = arrays
    units, inputs = recurrent.shape[0], kernel.shape[0]
    shapes = {
        "kernel": (kernel, (inputs, 3 * units)),
        "recurrent_kernel": (recurrent, (units, 3 * units)),
        "bias": (bias, (6 * units,)),
    }
    _expect("cudnn_gru", shapes)
    w = np.stack([np.ascontiguousarray(block).reshape(units, inputs) for block in np.split(kernel, 3, 1)])[SWAP]
    r = np.stack([np.ascontiguousarray(block) for block in np.split(recurrent, 3, 1)])[SWAP]
    b, c = (_gates(half, 3)[SWAP] for half in np.split(bias, 2))
    return Form("after", [Part(w, r, b, c)])


CUDNN_ATTRIBUTES = ("num_layers", "num_units", "input_size", "rnn_mode", "input_mode", "direction", "num_proj")


def read_cudnn(weights: Any) -> Form:
    """{"params": flat, "num_layers": …, "num_units": …, "input_size": …, and attributes that are not defaults}."""
    if not isinstance(weights, Mapping) or not {"params", "num_layers", "num_units", "input_size"} <= set(weights):
        raise _fail('cudnn weights are a dict with "params", "num_layers", "num_units", "input_size" and cudnn_rnn\'s attributes')
    attributes = {k: v for k, v in weights.items() if k != "params"}
    if unknown := set(attributes) - set(CUDNN_ATTRIBUTES):
        raise _fail(f"cudnn: beside params the dict has {', '.join(CUDNN_ATTRIBUTES)}; got {', '.join(sorted(unknown))}")
    plan = layout_of("convert", **attributes)
    if plan.mode not in ("gru", "lstm"):
        raise _fail(f"GRU and LSTM weights are converted; got rnn_mode {plan.mode}")
    cube: Any = lambda t: None if t is None else t.numpy().reshape(plan.gates, plan.units, -1)
    parts = []
    for e in split_params("convert", from_numpy(host(weights["params"], "params")), plan):
        b, c = (e[name].numpy().reshape(plan.gates, plan.units) for name in ("b_ih", "b_hh"))
        parts.append(Part(cube(e["w_ih"]), cube(e["w_hh"]), b, c, None if e["w_hr"] is None else e["w_hr"].numpy()))
    return Form("after" if plan.mode == "gru" else "lstm", parts, plan.directions)


def read_torch(weights: Any) -> Form:
    """A state_dict of nn.GRU or nn.LSTM."""
    if not isinstance(weights, Mapping) or "weight_ih_l0" not in weights or "weight_hh_l0" not in weights:
        raise _fail("torch weights are the state_dict of an nn.GRU or nn.LSTM: weight_ih_l0, weight_hh_l0, …")
    arrays = {name: host(a, name) for name, a in weights.items()}
    directions = 2 if "weight_ih_l0_reverse" in arrays else 1
    layers = sum(name.startswith("weight_ih_l") for name in arrays) // directions
    ends = [f"_l{k}{way}" for k in range(layers) for way in ("", "_reverse")[:directions]]
    kinds = (
        ["weight_ih", "weight_hh"]
        + ["bias_ih", "bias_hh"] * ("bias_ih_l0" in arrays)
        + ["weight_hr"] * ("weight_hr_l0" in arrays)
    )
    wanted = [kind + end for end in ends for kind in kinds]
    if set(arrays) != set(wanted):
        raise _fail(
            f"torch: {layers} layer(s) in {directions} direction(s) have the weights {', '.join(wanted)}; got {', '.join(arrays)}"
        )
    r, projection = arrays["weight_hh_l0"], arrays.get("weight_hr_l0")
    rows, width = r.shape if r.ndim == 2 else (0, 0)
    units = width if projection is None else projection.shape[-1]
    count = rows // units if units else 0
    if rows != count * units or count not in (3, 4) or (count == 3 and projection is not None):
        raise _fail(f"torch: a GRU has 3 gates and an LSTM 4; got weight_hh {r.shape}")
    parts = []
    for i, end in enumerate(ends):
        w = arrays["weight_ih" + end]
        below = w.shape[-1] if i < directions else directions * width
        shapes = {"weight_ih": (rows, below), "weight_hh": (rows, width), "weight_hr": (width, units)}
        _expect("torch", {kind + end: (arrays[kind + end], shapes.get(kind, (rows,))) for kind in kinds})
        b, c = (
            None if a is None else a.reshape(count, units) for a in (arrays.get("bias_ih" + end), arrays.get("bias_hh" + end))
        )
        r = arrays["weight_hh" + end].reshape(count, units, width)
        parts.append(Part(w.reshape(count, units, below), r, b, c, arrays.get("weight_hr" + end)))
    return Form("after" if count == 3 else "lstm", parts, directions)


def read_bigdl(weights: Any) -> Form:
    """weight [3H, I], bias [3H] (r, z, h), h2g [2H, H], u_h [H, H]: preTopology and the recurrent Linears."""
    w, b, h2g, u_h = _named(weights, "bigdl", ("weight", "bias", "h2g", "u_h"))
    units = len(u_h)
    _expect(
        "bigdl",
        {
            "weight": (w, (3 * units, w.shape[-1])),
            "bias": (b, (3 * units,)),
            "h2g": (h2g, (2 * units, units)),
            "u_h": (u_h, (units, units)),
        },
    )
    r = np.concatenate([h2g, u_h]).reshape(3, units, units)
    return Form("before", [Part(w.reshape(3, units, -1), r, b.reshape(3, units))])


def read_ggml(weights: Any) -> Form:
    """ggmlR's tensors as NumPy counts them (see gru_step, lstm_step); z opens the other way, which negation undoes."""
    if isinstance(weights, Mapping) and "W_gates" in weights:
        w, u, b = _named(weights, "ggml", ("W_gates", "U_gates", "b_gates"))
        _expect("ggml", {"W_gates": (w, (w.shape[0], len(b))), "U_gates": (u, (len(b) // 4, len(b)))})
        return Form("lstm", [Part(_gates(w, 4), _gates(u, 4), _gates(b, 4))])
    names = ("W_zh", "U_zh", "b_zh", "W_n", "U_n", "b_n")
    w_zh, u_zh, b_zh, w_n, u_n, b_n = _named(weights, "ggml", names)
    units, inputs = len(b_n), len(w_n)
    _expect("ggml", {"W_zh": (w_zh, (inputs, 2 * units)), "U_zh": (u_zh, (units, 2 * units)), "b_zh": (b_zh, (2 * units,)),
                     "W_n": (w_n, (inputs, units)), "U_n": (u_n, (units, units))})  # fmt: skip
    join = lambda zh, n: _turned_z(np.concatenate([_gates(zh, 2), _gates(n, 1)])[SWAP])
    return Form("before", [Part(join(w_zh, w_n), join(u_zh, u_n), join(b_zh, b_n))])


def _turned_z(gates: ndarray) -> ndarray:
    gates = gates.copy()
    gates[1] = -gates[1]
    return gates


# -- writers --------------------------------------------------------------------------------------------


def _single(form: Form, target: str) -> Part:
    if len(form.parts) != 1:
        raise _fail(
            f"{target} holds one layer in one direction; got {len(form.parts) // form.directions} layer(s) in "
            f"{form.directions} direction(s)"
        )
    return _plain(form.parts[0], target)


def _plain(part: Part, target: str) -> Part:
    if part.projection is not None:
        raise _fail(f"{target} has no projection of the LSTM's state")
    return Part(_matrices(part), part.r, part.b, part.c)


def _matrices(part: Part) -> ndarray:
    """Input matrices; identities where the input itself enters the gates."""
    if part.w is not None:
        return part.w
    count, units, _ = part.r.shape
    return np.stack([np.eye(units, dtype=part.r.dtype)] * count)


def _zeros(part: Part) -> ndarray:
    return np.zeros(part.r.shape[:2], part.r.dtype)


def _two(part: Part) -> tuple[ndarray, ndarray]:
    return (_zeros(part) if part.b is None else part.b), (_zeros(part) if part.c is None else part.c)


def _one(part: Part) -> ndarray:
    """The single bias of a gate: the sum, or the one that there is."""
    if part.b is None or part.c is None:
        return _two(part)[0] if part.c is None else part.c
    return np.where(part.c == 0, part.b, part.b + part.c)  # a -0.0 stays what it is


def write_tf_block(form: Form) -> dict:
    """See read_tf_block."""
    part = _single(form, "tf_block")
    both, b = np.concatenate([_matrices(part), part.r], 2), _one(part)
    return {"w_ru": _columns(both[:2]), "w_c": _columns(both[2:]), "b_ru": b[:2].reshape(-1), "b_c": b[2].copy()}


def write_keras(form: Form) -> list:
    """See read_keras."""
    if len(form.parts) != form.directions:
        raise _fail(f"a Keras layer is one layer; got {len(form.parts) // form.directions}. Convert them one by one")
    arrays: list = []
    for each in form.parts:
        part = _plain(each, "keras")
        order = [0, 1, 2, 3] if form.family == "lstm" else SWAP
        arrays += [_columns(_matrices(part)[order]), _columns(part.r[order])]
        if form.family == "after":
            arrays.append(np.stack([_columns(b[order]) for b in _two(part)]))
        else:
            arrays.append(_columns(_one(part)[order]))
    return arrays


def write_cudnn_gru(form: Form) -> list:
    """See read_cudnn_gru."""
    part = _single(form, "cudnn_gru")
    w, r = _matrices(part)[SWAP], part.r[SWAP]
    inputs, units = w.shape[2], r.shape[1]
    kernel = np.concatenate([np.ascontiguousarray(block).reshape(inputs, units) for block in w], 1)
    return [kernel, np.concatenate(list(r), 1), np.concatenate([b[SWAP].reshape(-1) for b in _two(part)])]


def write_cudnn(form: Form) -> dict:
    """See read_cudnn."""
    first = form.parts[0]
    count, units, _ = first.r.shape
    weights, biases = [], []
    for part in form.parts:
        weights += [a.reshape(-1) for a in (part.w, part.r, part.projection) if a is not None]
        biases += [b.reshape(-1) for b in _two(part)]
    found: dict = {
        "params": np.concatenate(weights + biases),
        "num_layers": len(form.parts) // form.directions,
        "num_units": units,
    }
    found |= {"input_size": units if first.w is None else first.w.shape[2], "rnn_mode": "gru" if count == 3 else "lstm"}
    found["direction"] = "bidirectional" if form.directions == 2 else "unidirectional"
    found["input_mode"] = "skip_input" if first.w is None else "linear_input"
    found["num_proj"] = 0 if first.projection is None else len(first.projection)
    return found


def write_torch(form: Form) -> dict:
    """See read_torch."""
    found = {}
    for i, part in enumerate(form.parts):
        end = f"_l{i // form.directions}" + ("_reverse" if i % form.directions else "")
        rows = part.r.shape[0] * part.r.shape[1]
        found["weight_ih" + end] = _matrices(part).reshape(rows, -1)
        found["weight_hh" + end] = part.r.reshape(rows, -1)
        for name, b in zip(("bias_ih", "bias_hh"), _two(part), strict=True):
            found[name + end] = b.reshape(rows)
        if part.projection is not None:
            found["weight_hr" + end] = part.projection
    return found


def write_bigdl(form: Form) -> dict:
    """See read_bigdl."""
    part = _single(form, "bigdl")
    units = part.r.shape[1]
    w, r = _matrices(part).reshape(3 * units, -1), part.r.reshape(3 * units, units)
    return {"weight": w, "bias": _one(part).reshape(-1), "h2g": r[: 2 * units], "u_h": r[2 * units :]}


def write_ggml(form: Form) -> dict:
    """See read_ggml."""
    part = _single(form, "ggml")
    if form.family == "lstm":
        return {"W_gates": _columns(_matrices(part)), "U_gates": _columns(part.r), "b_gates": _columns(_one(part))}
    turned = [(name, _turned_z(gates)[SWAP]) for name, gates in (("W", _matrices(part)), ("U", part.r), ("b", _one(part)))]
    found = {f"{name}_zh": _columns(gates[:2]) for name, gates in turned}  # in the order of gru_step's arguments
    return found | {f"{name}_n": _columns(gates[2:]) for name, gates in turned}


READERS: dict[str, Callable] = {
    "tf_block": read_tf_block, "keras": read_keras, "cudnn_gru": read_cudnn_gru, "cudnn": read_cudnn,
    "torch": read_torch, "bigdl": read_bigdl, "ggml": read_ggml,
}  # fmt: skip
WRITERS: dict[str, Callable] = {
    "tf_block": write_tf_block, "keras": write_keras, "cudnn_gru": write_cudnn_gru, "cudnn": write_cudnn,
    "torch": write_torch, "bigdl": write_bigdl, "ggml": write_ggml,
}  # fmt: skip
