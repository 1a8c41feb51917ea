"""Recurrent layers of five systems on one engine: TensorFlow's block cell, cuDNN's family, ggmlR's steps, and weights
moved between them, Keras, BigDL and PyTorch: exactly, or not at all.

Two families of GRU look alike and are not. "before" applies the reset gate to the state, "after" to the state's product:

    before   n = tanh(x W_n + b_n + (r * h) R_n)            after   n = tanh(x W_n + b_n + r * (h R_n + c_n))

Layouts (I inputs, U units, D directions; G gates: 3 in a GRU, 4 in an LSTM)

| name | weights, in the form that convert takes and gives | gates | new state | family, biases |
| tf_block | dict w_ru [I+U, 2U], w_c [I+U, U] (rows x, then h), b_ru [2U], b_c [U] | r, u; c | u h + (1-u) c | before, 1 |
| keras | list kernel [I, 3U], recurrent [U, 3U], bias [3U] (reset_after=False) | z, r, h | z h + (1-z) n | before, 1 |
| keras | the same with bias [2, 3U] (reset_after=True) | z, r, h | z h + (1-z) n | after, 2 |
| cudnn_gru | list kernel [I, 3U], recurrent [U, 3U], bias [6U]: CuDNNGRU's variables | z, r, h | z h + (1-z) n | after, 2 |
| cudnn | dict params (flat, below), num_layers, num_units, input_size, attributes | r, z, n | (1-z) n + z h | after, 2 |
| torch | state_dict: weight_ih [3U, in], weight_hh [3U, U], bias_ih, bias_hh [3U] | r, z, n | (1-z) n + z h | after, 2 |
| bigdl | dict weight [3U, I], bias [3U], h2g [2U, U], u_h [U, U] | r, z, h | z h + (1-z) n | before, 1 |
| ggml | dict W_zh [I, 2U], U_zh [U, 2U], b_zh [2U], W_n [I, U], U_n [U, U], b_n [U] | z, r; n | (1-z) h + z n | before, 1 |

A Keras list of six arrays is a Bidirectional. LSTM: gates i, f, g, o in all; keras (4U columns, bias [4U]), cudnn and
torch as above, ggml a dict W_gates [I, 4U], U_gates [U, 4U], b_gates [4U].

The flat vector of cuDNN, G blocks of rows each, row-major: for every pseudo-layer (layer * D + direction) W [G U, in],
R [G U, h], and of a projection W_proj [P, U]; then for every pseudo-layer b_W [G U], b_R [G U]. skip_input leaves the
first layer's W out. A CuDNNGRU block holds the memory of cuDNN's [U, I] matrix under the shape [I, U].

Conversions

| from \\ to | before family                       | after family                    | LSTM  |
| before     | exact                               | only if R_n is diagonal (below) | -     |
| after      | only if R_n is diagonal and c_n = 0 | exact                           | -     |
| LSTM       | -                                   | -                               | exact; projections torch <-> cudnn |

Exact: matrices keep their bits, and so do biases. Where a system has one bias a gate and the source has two, it gets
their sum; the other way it gets the bias and zeros. Weights without biases get zeros. Diagonal R_n (one unit is such a
case): r * (h R_n) = (r * h) R_n. Refused besides: several layers or directions into one, activations other than tanh and
sigmoid into tf_block, cudnn_gru, cudnn and torch, and into ggml gate activations without f(-a) = 1 - f(a), since there
z opens the other way and its weights are negated; and out of ggml likewise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import nn
from .create import from_numpy, place
from .ops.rnn_block import gru_block_cell, gru_block_cell_grad, gru_step, lstm_step
from .ops.rnn_composite import ACTIVATIONS
from .ops.rnn_cudnn import canonical_to_params as cudnn_rnn_canonical_to_params
from .ops.rnn_cudnn import cudnn_rnn, cudnn_rnn_backprop
from .ops.rnn_cudnn import params_size as cudnn_rnn_params_size
from .ops.rnn_cudnn import params_to_canonical as cudnn_rnn_params_to_canonical
from .ops.rnn_layouts import READERS, WRITERS, Form, Part, dtype_name, host
from .tensor import Tensor

__all__ = [
    "convert", "cudnn_rnn", "cudnn_rnn_backprop", "cudnn_rnn_canonical_to_params", "cudnn_rnn_params_size",
    "cudnn_rnn_params_to_canonical", "gru_block_cell", "gru_block_cell_grad", "gru_step", "load_keras", "load_torch", "lstm_step",
]  # fmt: skip

FAMILY = {"tf_block": "before", "bigdl": "before", "ggml": "before", "cudnn_gru": "after", "cudnn": "after", "torch": "after"}
FIXED = ("tf_block", "cudnn_gru", "cudnn", "torch")  # tanh and sigmoid, nothing else
WITHOUT_LSTM = ("tf_block", "cudnn_gru", "bigdl")
ODD = ("sigmoid", "hard_sigmoid", "hard_sigmoid_keras2", "hardsigmoid")  # f(-a) = 1 - f(a)


def convert(weights: Any, *, source: str, target: str, reset_after: bool | None = None, activation: str = "tanh",
            gate_activation: str = "sigmoid") -> Any:  # fmt: skip
    """The weights of one system's GRU or LSTM in another's layout; this module's docstring has the table.

    weights: arrays or Tensors in the source's form; the result holds NumPy arrays, or Tensors like the first of ours.
    reset_after: the family of a Keras target (default: that of the source), or of a Keras source, whose bias may not tell
    otherwise; an error elsewhere. activation, gate_activation: those of the source. ValueError with the reason where no
    exact conversion exists, and for unknown names and shapes that do not fit.
    """
    for name, value in ("source", source), ("target", target):
        if value not in READERS:
            raise ValueError(f"[convert] {name} is one of {', '.join(READERS)}; got {value!r}")
    form: Form = READERS[source](weights)
    unknown = not form.family
    if unknown:
        if reset_after is None:
            raise ValueError("[convert] a Keras GRU without bias may be of either family; pass reset_after=True or False")
        form.family = "after" if reset_after else "before"
    elif reset_after is not None and target != "keras":
        if source != "keras" or form.family != ("after" if reset_after else "before"):
            raise ValueError(f"[convert] reset_after={reset_after} is no family of these {source} weights for {target}")
    elif reset_after is not None and form.family == "lstm":
        raise ValueError("[convert] reset_after is a GRU's; got an LSTM")
    _check_activations(form, source, target, activation, gate_activation)
    if form.family == "lstm":
        if target in WITHOUT_LSTM:
            raise ValueError(f"[convert] {target} has no LSTM")
    else:
        wanted = FAMILY.get(target)
        if wanted is None:
            wanted = form.family if reset_after is None or unknown else "after" if reset_after else "before"
        if wanted != form.family:
            form = Form(wanted, [_across(part, form.family) for part in form.parts], form.directions)
    found = WRITERS[target](form)
    return _as_given(found, weights)


def _check_activations(form: Form, source: str, target: str, activation: str, gate: str) -> None:
    from .keras import activations  # Keras is built on this package

    for name in activation, gate:
        if name not in ACTIVATIONS:
            activations.get(name)  # ValueError for unknown names
    for system in source, target:
        if system in FIXED and (activation, gate) != ("tanh", "sigmoid"):
            raise ValueError(f"[convert] {system} has tanh and sigmoid only; got {activation} and {gate}")
    if (source == "ggml") != (target == "ggml") and form.family != "lstm" and gate not in ODD:
        raise ValueError(
            f"[convert] ggml's z opens towards the candidate: its weights are negated, which needs f(-a) = 1 - f(a); got {gate}"
        )


def _across(part: Part, family: str) -> Part:
    """The other family's form of the same function, where there is one."""
    r_n = part.r[2]
    if (r_n != np.diag(np.diag(r_n))).any():
        raise ValueError(
            "[convert] the reset gate acts before the product in one system and after it in the other: no exact "
            "conversion, unless the candidate's recurrent matrix is diagonal"
        )
    if family == "after" and part.c is not None and part.c[2].any():
        raise ValueError(
            "[convert] the candidate's recurrent bias stands inside the reset gate, where a system with the gate "
            "before the product has none: exact only if it is 0"
        )
    return part


def _as_given(found: Any, weights: Any) -> Any:
    """Contiguous arrays, as Tensors like the source's where those were."""
    given = list(weights.values()) if isinstance(weights, Mapping) else list(weights)
    like = next((a for a in given if isinstance(a, Tensor)), None)

    def finish(a: Any) -> Any:
        if not isinstance(a, np.ndarray):
            return a
        a = a.copy(order="C")
        return a if like is None else from_numpy(a).to(like.device, like.dtype)

    return {k: finish(a) for k, a in found.items()} if isinstance(found, dict) else [finish(a) for a in found]


def load_torch(source: Any, *, batch_first: bool = False, device: Any = None) -> nn.Module:
    """Our nn.GRU or nn.LSTM with the weights of PyTorch's, from the module or its state_dict.

    A module also tells batch_first, dropout and whether it trains. ValueError for other modules, TypeError for what is none.
    """
    if not isinstance(source, Mapping) and not hasattr(source, "state_dict"):
        raise TypeError(f"[load_torch] expected a module or its state_dict; got {type(source).__name__}")
    state = source if isinstance(source, Mapping) else source.state_dict()
    batch_first = getattr(source, "batch_first", batch_first)
    dropout = getattr(source, "dropout", 0.0)
    form = READERS["torch"](state)
    dtype = dtype_name(state["weight_ih_l0"])
    made = _module(form, batch_first, float(dropout), device, dtype, bias="bias_ih_l0" in state)
    made.train(getattr(source, "training", True))
    made.load_state_dict({name: place(host(a, name).copy(), device) for name, a in state.items()})
    return made


def load_keras(weights: Any, *, reset_after: bool | None = None, device: Any = None, **options: Any) -> Any:
    """keras.layers.GRU or LSTM, or a Bidirectional around one, with the weights of a Keras layer's get_weights().

    reset_after: the family of a GRU without biases, whose shapes do not tell it. options: the layer's other arguments
    (return_sequences, return_state, activation, …). ValueError for lists that are none of these layers' weights.
    """
    from .keras import layers  # Keras' layers are built on this package

    arrays = [host(a, f"weights[{i}]") for i, a in enumerate(weights)]
    form: Form = READERS["keras"](arrays)
    if not form.family and reset_after is None:
        raise ValueError("[load_keras] a Keras GRU without bias may be of either family; pass reset_after=True or False")
    if form.family and reset_after is not None and form.family != ("after" if reset_after else "before"):
        raise ValueError(f"[load_keras] reset_after={reset_after} contradicts the weights, which are of the kind {form.family!r}")
    part = form.parts[0]
    options = {"use_bias": part.b is not None, "dtype": dtype_name(weights[0]), **options}
    if form.family == "lstm":
        made: Any = layers.LSTM(part.r.shape[1], **options)
    else:
        after = form.family == "after" if form.family else reset_after
        made = layers.GRU(part.r.shape[1], reset_after=after, **options)
    if form.directions == 2:
        made = layers.Bidirectional(made)
    made.build((None, None, len(arrays[0])))
    made.set_weights(arrays)
    return made if device is None else made.to(device)


def _module(form: Form, batch_first: bool, dropout: float, device: Any, dtype: str, bias: bool) -> nn.Module:
    part = form.parts[0]
    units = part.r.shape[1]
    options: dict = {
        "num_layers": len(form.parts) // form.directions,
        "batch_first": batch_first,
        "dropout": dropout,
        "bias": bias,
    }
    options |= {"bidirectional": form.directions == 2, "device": device, "dtype": dtype}
    if form.family == "lstm":
        return nn.LSTM(part.w.shape[2], units, proj_size=0 if part.projection is None else len(part.projection), **options)  # type: ignore[union-attr]
    return nn.GRU(part.w.shape[2], units, **options)  # type: ignore[union-attr]
