"""`make parity`: the engine against the database that PyTorch tests its own operators with.

For every operator in scope, PyTorch's wheel draws sample inputs and inputs that must fail. Each sample runs through
PyTorch and through us; values, dtypes and the gradients of random seeds are compared. Prints a line for each operator
that differs, and the score. Needs the extra `parity`. Usage: parity.py [--samples N] [cpu|wgpu] [operator ...]
"""

from __future__ import annotations

import argparse
import sys
import warnings
from itertools import islice

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from tqdm import tqdm

import autograd as ag

SAMPLES = 40  # of an operator, at most: the default of --samples

# Not this project's: a name equal to one of these, or one that begins with one that ends in "*", and why.
OUT_OF_SCOPE = {
    "internals of PyTorch": "_* torch.* jiterator* unsafe_* native_* hash_tensor resize* empty* new_empty* as_strided* bmm_triton* "
    "segment_reduce* max_pool2d_with_indices_backward* bfloat16* byte* char* short* zero_* slice sspaddmm* histogramdd*",
    "complex numbers": "cdouble* cfloat* chalf* complex* view_as_* resolve_* imag* mH* isreal* sgn* H real angle conj polar",
    "sparse and masked layouts": "sparse* to_sparse* masked.*",
    "Fourier transforms and signals": "fft.* signal.* stft* istft*",
    "random numbers: their streams are not PyTorch's": "cauchy* exponential* geometric* log_normal* uniform* bernoulli* multinomial* "
    "normal randn rand randint rand_like randn_like randint_like nn.functional.dropout* nn.functional.alpha_dropout* "
    "nn.functional.feature_alpha* nn.functional.rrelu* nn.functional.fractional*",
    "factorisations without a unique answer, or rare": "geqrf* ormqr* lu_unpack* lu_solve* linalg.ldl* linalg.lu_factor_ex* "
    "linalg.householder* linalg.eig* linalg.tensor* svd_lowrank* pca_lowrank* linalg.pinv* linalg.lstsq*",
    "rare special functions": "special.airy* special.bessel* special.cheb* special.hermite* special.laguerre* special.legendre* "
    "special.modified* special.scaled* special.shifted* special.spherical* special.zeta* special.polygamma* polygamma* mvlgamma* "
    "igamma*",
    "layers' own": "nn.functional.max_unpool* nn.functional.linear_cross_entropy* nn.functional.scaled_dot_product* "
    "nn.functional.multi_head_attention_forward*",
}
_WORDS = [word for words in OUT_OF_SCOPE.values() for word in words.split()]
EXACT = {w for w in _WORDS if not w.endswith("*")}
PREFIXES = tuple(w[:-1] for w in _WORDS if w.endswith("*"))

# Operators whose samples come in another order than the function's arguments.
REORDERED = {
    "einsum": lambda: lambda tensors, equation: ag.einsum(equation, *tensors),
    "where": lambda: lambda x, condition, other: ag.where(condition, x, other),
    "nn.functional.embedding": lambda: lambda weight, index, **options: ag.nn.functional.embedding(index, weight, **options),
}
CASTS = ("bool", "double", "float", "half", "int", "long")


def in_scope(name: str) -> bool:
    """Whether the project means to have this operator."""
    return name not in EXACT and not name.startswith(PREFIXES)


def ours(name: str):
    """Our function for PyTorch's name: a reordering, a Tensor method, or ag.<name>. LookupError when there is none."""
    if name in REORDERED:
        return REORDERED[name]()
    if name in CASTS:
        return getattr(ag.Tensor, name)
    place = ag
    for part in name.split("."):
        place = getattr(place, part, None)
    if callable(place):
        return place
    method = getattr(ag.Tensor, name.rpartition(".")[2], None)
    if method is None:
        raise LookupError("missing")
    return method if callable(method) else lambda x, *args, **options: getattr(x, name)


def rebuilt(value, leaf):
    """A nested value with leaf(x) in place of every tensor."""
    if isinstance(value, torch.Tensor):
        return leaf(value)
    if isinstance(value, dict):
        return {k: rebuilt(v, leaf) for k, v in value.items()}
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        return type(value)(rebuilt(v, leaf) for v in value)
    return value


def converted(value, device: str, tracked: list):
    """The same arguments for us; tensors that require grad are also put into `tracked`."""

    def leaf(x: torch.Tensor):
        t = ag.tensor(np.array(x.detach().numpy()), device=device, requires_grad=x.requires_grad)
        if x.requires_grad:
            tracked.append(t)
        return t

    if isinstance(value, torch.dtype):
        return getattr(ag, str(value).removeprefix("torch."))
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, torch.device):
        return device
    if isinstance(value, dict):
        return {k: converted(v, device, tracked) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(converted(v, device, tracked) for v in value)
    return rebuilt(value, leaf)


def flat(value) -> list:
    """The leaves of nested lists, tuples and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    return [x for v in value for x in flat(v)] if isinstance(value, list | tuple) else [value]


def array(x) -> np.ndarray:
    return np.asarray(x.detach().cpu().numpy() if hasattr(x, "detach") else x)


def agree(got, want, rtol: float, atol: float, what: str) -> None:
    """AssertionError unless shape, dtype and values are PyTorch's."""
    a, b = array(got), array(want)
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        raise AssertionError(f"{what}: {a.dtype} {a.shape}, PyTorch has {b.dtype} {b.shape}")
    if not np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
        raise AssertionError(f"{what}: values differ")


def run_sample(function, op, sample, device: str, rtol: float, atol: float) -> None:
    """One sample forward and, where PyTorch has one, its gradient."""
    leaves: list[torch.Tensor] = []

    def fresh(x: torch.Tensor) -> torch.Tensor:
        y = x.detach().clone().requires_grad_(x.requires_grad)
        leaves.extend([y] if y.requires_grad else [])
        return y

    args, options = rebuilt((sample.input, *sample.args), fresh), rebuilt(sample.kwargs, fresh)
    want = flat(op.op(*args, **options))
    tracked: list = []
    args, options = converted(args, device, tracked), converted(options, device, tracked)
    got = flat(function(*args, **options))
    if len(got) != len(want):
        raise AssertionError(f"{len(got)} outputs, PyTorch has {len(want)}")
    seeds = []
    random = np.random.default_rng(0)
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        agree(g, w if isinstance(w, torch.Tensor) else type(g)(w), rtol, atol, f"output {i}")
        if isinstance(w, torch.Tensor) and w.requires_grad:
            seeds.append((g, w, random.standard_normal(tuple(w.shape)).astype(array(w).dtype)))
    if not seeds or not leaves:
        return
    slopes = torch.autograd.grad([w for _, w, _ in seeds], leaves, [torch.from_numpy(np.asarray(s)) for *_, s in seeds], allow_unused=True)
    for g, _, s in seeds:
        g.backward(ag.tensor(s, device=device), retain_graph=True)
    for i, (t, slope) in enumerate(zip(tracked, slopes, strict=True)):
        if slope is not None and (t.grad is not None or slope.any()):
            if t.grad is None:
                raise AssertionError(f"gradient {i} is missing")
            agree(t.grad, slope, 5 * rtol, 10 * atol, f"gradient {i}")


def score(op, device: str, dtype: torch.dtype, most: int = SAMPLES) -> str | None:
    """What is wrong with an operator: "" for nothing, None when the database draws no samples for it."""
    if dtype not in op.supported_dtypes("cpu"):
        dtype = next((d for d in (torch.float32, torch.int64, torch.bool) if d in op.supported_dtypes("cpu")), None)
        if dtype is None:
            return None
    torch.manual_seed(0)
    try:
        tracks = op.supports_autograd and dtype.is_floating_point
        samples = list(islice(op.sample_inputs("cpu", dtype, requires_grad=tracks), most))
    except Exception:  # some entries cannot draw outside PyTorch's own test machines
        return None
    rtol, atol = (1e-7, 1e-7) if dtype is torch.float64 else (2e-4, 2e-5)
    try:
        function = ours(op.name)
        for sample in samples:
            run_sample(function, op, sample, device, rtol, atol)
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("\n", " ")[:150]
    return "" if samples else None


def fails(function) -> bool:
    """Whether a call raises."""
    try:
        function()
    except Exception:
        return True
    return False


def refused(op, device: str) -> tuple[int, int, list[str]]:
    """Of the samples that must fail: how many raise, how many of those name an op, and those that are accepted."""
    raised = named = 0
    accepted = []
    try:
        samples = list(op.error_inputs("cpu")) if op.error_inputs_func is not None else []
        function = ours(op.name)
    except Exception:
        return 0, 0, []
    for error in samples:
        sample = error.sample_input
        if not fails(lambda sample=sample: op.op(sample.input, *sample.args, **sample.kwargs)):
            continue  # PyTorch accepts it after all
        try:
            args, options = converted((sample.input, *sample.args), device, []), converted(sample.kwargs, device, [])
        except (TypeError, OverflowError, ValueError):  # complex numbers, 65 dimensions: refused before the op is reached
            continue
        try:
            function(*args, **options)
        except Exception as problem:
            said = str(problem)  # "[cat] …", or Python's own "cat() got an unexpected keyword …"
            raised, named = raised + 1, named + (said.startswith("[") or f"{op.name.rpartition('.')[2]}(" in said)
        else:
            accepted.append(f"{op.formatted_name} accepts what PyTorch refuses: {error.error_regex[:90]}")
    return raised, named, accepted


def command_line(samples: int) -> tuple[str, set[str], int]:
    """What a script of this kind was asked for: device, names (all when empty), and the most samples of each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=samples, metavar="N", help="at most N samples of each (%(default)s)")
    parser.add_argument("what", nargs="*", metavar="cpu|wgpu|NAME", help="the device, then names: all unless given")
    given = parser.parse_args()
    device = given.what.pop(0) if given.what and given.what[0] in ("cpu", "wgpu") else "cpu"
    return device, set(given.what), given.samples


def main(device: str, only: set[str], most: int) -> int:
    """Print what differs, and how many operators match. The exit status says whether enough do."""
    warnings.filterwarnings("ignore")
    dtype = torch.float64 if device == "cpu" else torch.float32
    wanted = [op for op in op_db if (op.name in only if only else in_scope(op.name))]
    results = {}
    raised = named = 0
    accepted: list[str] = []
    for op in tqdm(wanted, unit="operator", desc=device, mininterval=5):
        wrong = score(op, device, dtype, most)
        if wrong is not None:
            results[op.formatted_name] = wrong
            if wrong:
                tqdm.write(f"{op.formatted_name}: {wrong}")
        more = refused(op, device) if device == "cpu" else (0, 0, [])
        raised, named, accepted = raised + more[0], named + more[1], accepted + more[2]
    good = sum(not wrong for wrong in results.values())
    print(f"{good} of {len(results)} operators match PyTorch {torch.__version__} on every sample, on {device} in {dtype}")
    if device == "cpu":
        print(*accepted, sep="\n")
        print(f"{raised} of {raised + len(accepted)} samples that must fail do, {named} of them with the op's name in front")
    needed = len(results) if only or device == "cpu" else 430
    return int(good < needed)


if __name__ == "__main__":
    sys.exit(main(*command_line(SAMPLES)))
