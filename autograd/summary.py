"""ag.summary: a model's layers with their output shapes, parameters and bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import create
from .grad_mode import no_grad
from .nn.module import Module
from .tensor import Tensor


@dataclass(frozen=True)
class Layer:
    """One call of a module. name: dotted, "" for the model; shape: its output's, or one for each of several outputs.

    parameters: elements of those it holds itself, not in modules below; trainable: of these, those that require grad;
    parameter_bytes and output_bytes: what they and its outputs occupy. A parameter counts where it comes first.
    """

    name: str
    kind: str
    depth: int
    shape: tuple
    parameters: int
    trainable: int
    parameter_bytes: int
    output_bytes: int


class Summary(list[Layer]):
    """The layers in the order of their calls; prints as a table.

    parameters, trainable, parameter_bytes, buffer_bytes: of the whole model, each tensor once; output_bytes: of the
    outputs of all modules that have none below them.
    """

    def __init__(self, layers: list[Layer], model: Module, leaves: set[str]):
        super().__init__(layers)
        own = [p for _, p in model.named_parameters()]
        self.parameters = sum(p.numel() for p in own)
        self.trainable = sum(p.numel() for p in own if p.requires_grad)
        self.parameter_bytes = sum(p.nbytes for p in own)
        self.buffer_bytes = sum(b.nbytes for b in model.buffers())
        self.output_bytes = sum(layer.output_bytes for layer in self if layer.name in leaves)

    def __repr__(self) -> str:
        rows = [("layer", "output shape", "parameters", "bytes")]
        for x in self:
            label = "  " * x.depth + (f"{x.name.rpartition('.')[2]}: {x.kind}" if x.name else x.kind)
            rows.append((label, _shown(x.shape), f"{x.parameters:,}" if x.parameters else "-", f"{x.parameter_bytes:,}"))
        widths = [max(len(row[c]) for row in rows) for c in range(4)]
        cells = [[c.rjust(w) if i > 1 else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths))] for row in rows]
        lines = ["  ".join(row).rstrip() for row in cells]
        lines.insert(1, "-" * (sum(widths) + 6))
        frozen = self.parameters - self.trainable
        return "\n".join([
            *lines, lines[1],
            f"{self.parameters:,} parameters ({self.trainable:,} trainable, {frozen:,} not), {self.parameter_bytes:,} bytes",
            f"{self.buffer_bytes:,} bytes of buffers, {self.output_bytes:,} bytes of outputs in one forward pass",
        ])  # fmt: skip


def _shown(shape: tuple) -> str:
    return ", ".join(str(s) for s in shape) if shape and isinstance(shape[0], tuple) else str(shape)


def _tensors(value: Any) -> list[Tensor]:
    """The tensors in a module's output: itself, or in tuples, lists and dicts."""
    if isinstance(value, Tensor):
        return [value]
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [t for member in members for t in _tensors(member)]


def summary(model: Module, input_size: Any, dtype: Any = None, device: Any = None) -> Summary:
    """The layers of `model`, from one forward pass over zeros in eval mode, without recording: print it.

    input_size: the input's shape with its batch size, or a list of shapes for several inputs. dtype: of the inputs, one
    or a list of them (float32, or the parameters'); "int64" for an Embedding. device: the parameters'.
    TypeError for what is not a Module. Every module is left in the mode it was in.
    """
    if not isinstance(model, Module):
        raise TypeError(f"[summary] expected a Module; got {type(model).__name__}")
    inputs = _inputs(model, input_size, dtype, device)
    layers: list[Layer | None] = []
    counted: set = set()
    modes = {m: m.training for m in model.modules()}
    handles = [h for name, m in model.named_modules() for h in _watch(name, m, layers, counted)]
    try:
        model.eval()
        with no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for m, training in modes.items():
            m.training = training
    leaves = {name for name, m in model.named_modules() if not m._modules}
    return Summary([x for x in layers if x is not None], model, leaves)


def _inputs(model: Module, input_size: Any, dtype: Any, device: Any) -> list[Tensor]:
    several = isinstance(input_size, list) or (len(input_size) > 0 and not isinstance(input_size[0], int))
    sizes = list(input_size) if several else [tuple(input_size)]
    first = next((p for _, p in model.named_parameters() if p.dtype.is_floating_point), None)
    kinds = dtype if isinstance(dtype, list | tuple) else [dtype] * len(sizes)
    if len(kinds) != len(sizes):
        raise ValueError(f"[summary] one dtype, or one for each of {len(sizes)} inputs; got {len(kinds)}")
    where = device if device is not None else None if first is None else first.device
    own = None if first is None else first.dtype
    return [create.zeros(tuple(s), dtype=k or own, device=where) for s, k in zip(sizes, kinds, strict=True)]


def _watch(name: str, module: Module, layers: list, counted: set) -> list:
    """Hooks that enter the module's calls: the line is reserved before the call, so that parents come first."""
    places: list[int] = []

    def before(_: Module, args: tuple) -> None:
        places.append(len(layers))
        layers.append(None)

    def after(_: Module, args: tuple, output: Any) -> None:
        outputs = _tensors(output)
        shapes = tuple(t.shape for t in outputs)
        own = [p for _, p in module.named_parameters(recurse=False) if p not in counted]
        counted.update(own)
        layers[places.pop()] = Layer(
            name, type(module).__name__, name.count(".") + 1 if name else 0, shapes[0] if len(shapes) == 1 else shapes,
            sum(p.numel() for p in own), sum(p.numel() for p in own if p.requires_grad), sum(p.nbytes for p in own),
            sum(t.nbytes for t in outputs),
        )  # fmt: skip

    return [module.register_forward_pre_hook(before), module.register_forward_hook(after)]
