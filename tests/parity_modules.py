"""`make parity`, second part: layers and optimizers against the databases that PyTorch tests its own with.

A layer is built with the database's arguments in both libraries, takes PyTorch's weights through load_state_dict, and
runs the database's inputs in training and in evaluation: outputs and the gradients of inputs and parameters are
compared. An optimizer takes 25 steps on the same gradients with every setting of the database. On the CPU in float64;
with wgpu in float32. Prints a line for each that differs, and the score.
Needs the extra `parity`. Usage: parity_modules.py [--samples N] [cpu|wgpu] [nn.Name or optim.Name ...]
"""

from __future__ import annotations

import inspect
import sys
import warnings
from itertools import islice

import numpy as np
import torch
from parity import agree, command_line, converted, flat, rebuilt
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db
from tqdm import tqdm

import autograd as ag

# Not this yardstick's: layers with random numbers of their own, lazy ones, and optimizers with tests of another kind.
OUT_OF_SCOPE = {
    "nn.FractionalMaxPool2d", "nn.FractionalMaxPool3d", "nn.MaxUnpool1d", "nn.MaxUnpool2d", "nn.MaxUnpool3d", "nn.RReLU",
    "nn.Dropout", "nn.Dropout1d", "nn.Dropout2d", "nn.Dropout3d", "nn.AlphaDropout", "nn.FeatureAlphaDropout",
    "nn.AdaptiveLogSoftmaxWithLoss", "nn.SyncBatchNorm", "nn.LinearCrossEntropyLoss",
    "optim.SparseAdam", "optim.LBFGS", "optim.Muon",
}  # fmt: skip
SAMPLES = 100  # of a layer, in each of training and evaluation, at most: more than there are
# How PyTorch computes a step, not what: these settings change no number.
MANNER = ("foreach", "fused", "capturable", "differentiable")


def tensors(value) -> list[torch.Tensor]:
    """The tensors of a nested value that require grad, in the order in which converted() meets them."""
    found: list[torch.Tensor] = []
    rebuilt(value, lambda x: found.append(x) or x if x.requires_grad else x)
    return found


def layer_pair(info, sample, device: str, dtype: torch.dtype):
    """The layer in both libraries, with the same weights."""
    given = sample.constructor_input
    options = {k: v for k, v in given.kwargs.items() if k not in ("device", "dtype")}
    typed = {"dtype": dtype} if "dtype" in inspect.signature(info.module_cls.__init__).parameters else {}
    torch.manual_seed(0)
    theirs = info.module_cls(*given.args, **options, **typed).to(dtype)
    ours = getattr(ag.nn, info.module_cls.__name__)(*converted(list(given.args), device, []), **converted(options, device, []))
    ours = (ours.double() if dtype is torch.float64 else ours).to(device)
    ours.load_state_dict({k: ag.tensor(v.detach().numpy().copy(), device=device) for k, v in theirs.state_dict().items()})
    return ours, theirs


def run_layer(info, sample, training: bool, device: str, dtype: torch.dtype) -> None:
    """One sample forward and backward."""
    rtol, atol = (1e-7, 1e-8) if dtype is torch.float64 else (2e-4, 2e-5)
    ours, theirs = layer_pair(info, sample, device, dtype)
    ours.train(training), theirs.train(training)
    if sample.forward_input is None:
        return
    call = rebuilt((tuple(sample.forward_input.args), sample.forward_input.kwargs), lambda x: x.detach().clone().requires_grad_(x.requires_grad))
    inputs, tracked = tensors(call), []
    args, options = converted(call[0], device, tracked), converted(call[1], device, tracked)
    torch.manual_seed(0)
    want, got = flat(theirs(*call[0], **call[1])), flat(ours(*args, **options))
    if len(got) != len(want):
        raise AssertionError(f"{len(got)} outputs, PyTorch has {len(want)}")
    pairs = [(g, w) for g, w in zip(got, want) if isinstance(w, torch.Tensor)]
    for i, (g, w) in enumerate(pairs):
        agree(g, w, rtol, atol, f"output {i}")
    pairs = [(g, w) for g, w in pairs if w.requires_grad]
    named = {n: p for n, p in theirs.named_parameters() if p.requires_grad}
    if not pairs:
        return
    random = np.random.default_rng(0)
    seeds = [random.standard_normal(tuple(w.shape)).astype(w.detach().numpy().dtype) for _, w in pairs]
    slopes = torch.autograd.grad([w for _, w in pairs], [*inputs, *named.values()], [torch.from_numpy(np.asarray(s)) for s in seeds], allow_unused=True)
    for (g, _), seed in zip(pairs, seeds):
        g.backward(ag.tensor(seed, device=device), retain_graph=True)
    mine = dict(ours.named_parameters())
    labels = [*(f"input {i}" for i in range(len(inputs))), *named]
    for label, t, slope in zip(labels, [*tracked, *(mine[n] for n in named)], slopes, strict=True):
        if slope is not None and (t.grad is not None or slope.any()):
            if t.grad is None:
                raise AssertionError(f"the gradient of {label} is missing")
            agree(t.grad, slope, 5 * rtol, 10 * atol, f"gradient of {label}")


def score_layer(info, device: str, dtype: torch.dtype, most: int) -> str:
    """What is wrong with a layer: "" for nothing."""
    ran = 0
    try:
        for training in (True, False):
            torch.manual_seed(0)
            drawn = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
            for sample in islice(drawn, most):
                if not any(sample.constructor_input.kwargs.get(k) for k in ("dropout", "p")):  # random numbers
                    run_layer(info, sample, training, device, dtype)
                    ran += 1
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("\n", " ")[:150]
    return "" if ran else "no sample ran"


def run_optimizer(info, options: dict, device: str, dtype: torch.dtype) -> None:
    """25 steps on the same gradients."""
    random = np.random.default_rng(1)
    kind = np.float64 if dtype is torch.float64 else np.float32
    sizes = [(4, 3), (3,), (2, 2, 2)]
    start = [random.standard_normal(s).astype(kind) for s in sizes]
    theirs = [torch.nn.Parameter(torch.from_numpy(a.copy())) for a in start]
    ours = [ag.nn.Parameter(ag.tensor(a, device=device)) for a in start]
    steppers = info.optim_cls(theirs, **options), getattr(ag.optim, info.optim_cls.__name__)(ours, **options)
    for _ in range(25):
        for p, q in zip(theirs, ours):
            gradient = random.standard_normal(tuple(p.shape)).astype(kind)
            p.grad, q.grad = torch.from_numpy(gradient), ag.tensor(gradient, device=device)
        for stepper in steppers:
            stepper.step()
    limits = (1e-9, 1e-11) if dtype is torch.float64 else (2e-4, 2e-5)
    for i, (p, q) in enumerate(zip(theirs, ours)):
        agree(q, p, *limits, f"parameter {i}")


def score_optimizer(info, device: str, dtype: torch.dtype, most: int) -> str:
    """What is wrong with an optimizer: "" for nothing."""
    ran = 0
    try:
        for given in islice(info.optim_inputs_func(device="cpu"), most):
            options = {k: v for k, v in given.kwargs.items() if k not in MANNER}
            if not any(isinstance(x, torch.Tensor) for x in flat(options)):
                run_optimizer(info, options, device, dtype)
                ran += 1
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("\n", " ")[:150]
    return "" if ran else "no setting ran"


def main(device: str, only: set[str], most: int) -> int:
    """Print what differs, and how many match. The exit status says whether enough do."""
    warnings.filterwarnings("ignore")
    dtype = torch.float64 if device == "cpu" else torch.float32
    rows = [("nn." + info.module_cls.__name__, info, score_layer) for info in module_db]
    rows += [("optim." + info.optim_cls.__name__, info, score_optimizer) for info in optim_db]
    rows = [row for row in rows if (row[0] in only if only else row[0] not in OUT_OF_SCOPE and "Lazy" not in row[0])]
    good = 0
    for name, info, score in tqdm(rows, unit="layer", desc=device, mininterval=5):
        wrong = score(info, device, dtype, most)
        good += not wrong
        if wrong:
            tqdm.write(f"{name}: {wrong}")
    print(f"{good} of {len(rows)} layers and optimizers match PyTorch {torch.__version__}, on {device} in {dtype}")
    return int(good < (len(rows) if only or device == "cpu" else 110))


if __name__ == "__main__":
    sys.exit(main(*command_line(SAMPLES)))
