"""Random calls on wgpu with hostile shapes, dtypes and sizes: `python tests/webgpu/fuzz.py [CALLS [SEED]]`.

Each call ends in a result that can be read, or in a Python exception; the device computes right afterwards. Calls with
tame numbers are repeated on the CPU: values, gradients and whether they raise must agree. The number of a call stands on
stdout before it runs, so that one that ends the process is known. What went wrong is counted by name at the end, and so
is what says nothing to the user (the driver's words, an AttributeError): there is to be none.
"""

import collections
import inspect
import sys
import warnings

import numpy as np

import autograd as ag
from autograd import nn, optim

F = nn.functional
SHAPES = [(), (0,), (1,), (3,), (5,), (64,), (257,), (2, 3), (3, 1), (1, 4), (5, 7), (4, 0, 2), (2, 3, 4), (1, 1, 1, 3)]
SHAPES += [(2,) * 7, (1,) * 9, (2, 1, 2, 1, 2, 1, 2, 1, 2), (70, 33), (3_001,), (1, 3, 8, 8), (2, 2, 5), (4, 4), (2, 4, 6, 6), (2, 2, 4, 5, 5)]
DTYPES = [ag.float32] * 4 + [ag.float16, ag.bfloat16, ag.int64, ag.int32, ag.uint8, ag.bool, ag.float64]
NUMBERS = [0, 1, 2, 3, -1, -2, 7, 0.5, -1.5, True, None]
HOSTILE = [1e30, -1e-30, float("inf"), float("nan"), 2**31, -(2**40), 1e300, -(2**63), 2**64]
WORDS = ["sum", "mean", "amax", "none", "constant", "left", "fro", "floor", "wgpu", "", "reflect", "nearest", "bilinear", "same", "tanh"]
# Those whose work is not bounded by what they are given, or that change nothing on a device.
LEFT_OUT = {"repeat_interleave", "combinations", "tile", "repeat", "logspace", "tril_indices", "triu_indices", "unravel_index"}
LEFT_OUT |= {"matrix_power", "vander", "nonzero_static", "histc", "histogram", "bincount", "cartesian_prod", "kron"}
LEFT_OUT |= {name for name in ag.op.PUBLIC if "adaptive" in name or "pad" in name or name.startswith(("new_", "is_"))}
LEFT_OUT |= {"F.listed", "F.check_padding", "F.check_probability", "F.check_reduction", "F.affine_grid", "F.one_hot"}
METHODS = {name: getattr(ag.Tensor, name) for name in dir(ag.Tensor) if name.endswith("_") and not name.startswith("_")}
METHODS |= {name: getattr(ag.Tensor, name) for name in ("__getitem__", "__setitem__", "__iadd__", "__imul__", "__itruediv__")}
FUNCTIONS = {**ag.op.PUBLIC, **{f"Tensor.{name}": method for name, method in METHODS.items()}}
FUNCTIONS |= {f"F.{name}": getattr(F, name) for name in dir(F) if inspect.isfunction(getattr(F, name)) and name[0] != "_"}
NAMES = sorted(set(FUNCTIONS) - LEFT_OUT)
SILENT = ("Validation Error", "AttributeError", "KeyError", "UnboundLocal", "NameError", "AssertionError", "assert ")
# What is right by its own rule, not equal on both devices: signs of singular vectors, how a tie or a drawn number falls.
FREE = {"svd", "eigh", "qr", "empty_like", "lu", "geqrf", "ormqr", "orgqr", "householder_product"}
FREE |= {"searchsorted", "bucketize"}  # what they search is not sorted here
# What one device alone says: there is no float64 nor a ninth dimension, a copy on the CPU is not expanded nor a view of a
# leaf, and the GPU does not look at its numbers.
KNOWN = ("at most 8 dimensions on wgpu", "a leaf that requires grad", "float64", "expanded tensor share memory", "negative integer powers", "divided by zero")
TOLERANCE = {ag.float32: 2e-3, ag.float16: 3e-2, ag.bfloat16: 2e-1}


class Draw:
    """Arguments, drawn from a seed; tame ones are near 1, so that both devices can be asked for the same."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.tame = self.chance(0.6)

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, values):
        return values[int(self.rng.integers(len(values)))]

    def array(self, shape, dtype):
        """Values of a dtype, some of them extreme."""
        if dtype.is_floating_point:
            x = self.rng.standard_normal(shape)
            if self.tame:
                return x
            strange = self.rng.random(shape) < 0.05
            return np.where(strange, self.pick([np.inf, -np.inf, np.nan, 0.0, 3e38]), x * self.pick([1, 1, 1e-3, 1e4]))
        high = {ag.bool: 2, ag.uint8: 9 if self.tame else 256}.get(dtype, 4 if self.tame else self.pick([3, 1000, 2**31 - 1]))
        return self.rng.integers(0 if dtype in (ag.bool, ag.uint8) else 1 - high, high, shape)

    def tensor(self):
        """A tensor on the device, often seen through a view, or a view of a view."""
        sizes, dtype = self.pick(SHAPES), self.pick(DTYPES)
        device = "wgpu" if self.tame else self.pick(["wgpu"] * 9 + ["cpu"])
        x = ag.tensor(self.array(sizes, dtype), dtype=dtype, device=device)
        for _ in range(self.pick([0, 1, 1, 2])):
            x = self.view(x)
        return x

    def view(self, x):
        view = self.pick(["", "", "", "T", "step", "expand", "flip", "part", "grad", "wait"])
        if view == "T" and x.ndim > 1:
            return x.transpose(0, -1)
        if view in ("step", "part") and x.ndim and x.shape[0] > 1:
            return x[1::2] if view == "step" else x[1:]
        if view == "expand" and x.ndim and x.shape[0] == 1:
            return x.expand(6, *x.shape[1:])
        if view == "flip" and x.ndim:
            return x.flip(-1)
        if view == "grad" and x.is_floating_point() and x.node is None:
            return x.requires_grad_()
        return x * 1 if view == "wait" and x.dtype is not ag.bool else x

    def fitting(self, name, first):
        """An argument that the parameter's name asks for."""
        if name in ("dim", "axis", "dim0", "dim1", "dims", "start_dim"):
            return int(self.rng.integers(-1, max(first.ndim, 1)))
        if name in ("keepdim", "largest", "sorted", "descending", "unbiased", "reverse", "inplace", "ceil_mode", "training",
                    "return_indices", "align_corners", "is_causal", "count_include_pad", "full", "hard", "swap"):  # fmt: skip
            return bool(self.rng.integers(2))
        if name in ("index", "indices", "target") and self.chance(0.7):
            sizes = self.pick([first.shape, (3,), first.shape[:1]])
            return ag.tensor(self.rng.integers(0 if self.tame else -1, 3, sizes), device=first.device)
        if name in ("mask", "condition", "attn_mask"):
            return first.detach() > 0
        if name in ("tensors", "operands"):
            return [first, (first * 1).detach(), first]
        if name in ("size", "shape", "sizes", "normalized_shape", "output_size"):
            return self.pick([(-1,), first.shape, first.shape[-1:], first.shape[2:]])
        if name in ("n", "k", "kernel_size", "shifts", "diagonal", "offset", "stride", "length", "chunks", "start", "decimals",
                    "padding", "dilation", "groups", "num_groups", "upscale_factor", "downscale_factor", "output_padding"):  # fmt: skip
            return int(self.rng.integers(0 if self.tame else -1, 4))
        if name in ("p", "dropout_p", "eps", "alpha", "beta", "momentum", "label_smoothing", "margin", "delta", "lambd"):
            return self.pick([0.0, 0.1, 0.5, 1.0, 2.0])
        if name in ("reduction", "mode", "approximate"):
            return self.pick(WORDS)
        if name == "weight" and first.ndim > 2 and self.chance(0.7):
            return first.detach()[:, :, :2].mean(0, keepdim=True).expand(3, *[-1] * (first.ndim - 1)).clone()
        if name in ("running_mean", "running_var", "bias", "weight") and first.ndim > 1 and self.chance(0.7):
            return ag.ones(first.shape[self.pick([1, -1])], dtype=first.dtype, device=first.device)
        if self.chance(0.7):  # of the same shape and dtype: most functions take such a one
            return (first * 1 if first.dtype is not ag.bool else ~first).detach()
        return self.tensor()

    def arguments(self, function):
        """Arguments for a function: as many as it asks for, most of them fitting, some not."""
        given = [self.tensor()]
        wanted = [p for p in inspect.signature(function).parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
        if wanted and wanted[0].name in ("tensors", "operands"):
            return [self.fitting("tensors", given[0])] if wanted[0].kind is not inspect.Parameter.VAR_POSITIONAL else given * 2
        for p in wanted[1:]:
            if p.default is not p.empty and self.chance(0.5):
                break
            given.append(self.fitting(p.name, given[0]) if self.chance(0.85) or p.name == "keepdim" else self.argument())
        return given

    def argument(self):
        return self.pick([self.tensor, self.tensor, self.tensor, self.number, self.number, self.shape, self.word, self.tensors, self.slice])()

    def number(self):
        return self.pick(NUMBERS if self.tame else NUMBERS + HOSTILE)

    def shape(self):
        return tuple(int(n) for n in self.rng.integers(-1, 4, self.rng.integers(0, 5)))

    def word(self):
        return self.pick(WORDS)

    def tensors(self):
        return [self.tensor() for _ in range(int(self.rng.integers(0, 4)))]

    def slice(self):
        return self.pick([slice(1, None), slice(None, None, 2), Ellipsis, slice(None, None, -1), (0, slice(1, 2)), (None, Ellipsis, 0)])


def strange(draw):
    """One of the calls that ask for too much."""
    x = draw.tensor()
    huge = ag.ones((), device="wgpu", dtype=draw.pick([ag.float32, ag.float16, ag.int64]))
    return draw.pick([
        lambda: ag.zeros(2**20, 2**14, device="wgpu"),
        lambda: ag.full((2**40,), 1.0, device="wgpu"),
        lambda: ag.ones(2**33, dtype=ag.uint8, device="wgpu"),
        lambda: huge.expand(2**17, 2**17) + 1,
        lambda: huge.expand(2**17, 2**14).clone(),
        lambda: huge.expand(2**32 + draw.pick([-1, 0, 1]))[draw.pick([5, -1, 2**31])],
        lambda: huge.expand(2**16, 2**16)[::2**15, ::2**15].sum(),
        lambda: huge.expand(2**31).sort(),
        lambda: huge.expand(2**15, 2**17).softmax(0),
        lambda: huge.expand(2**16, 2**15, 2).argmax(1),
        lambda: huge.expand(2**34).reshape(2**17, -1).flatten()[3:4],
        lambda: huge.expand(2**31).index_select(0, ag.tensor([2**31 - 1], device="wgpu")),
        lambda: ag.cat([huge.expand(2**25)] * 90),
        lambda: huge.expand(2**16, 3) @ huge.expand(3, 2**16 + 1),
        lambda: x.reshape(-1, 2**31),
        lambda: x[int(draw.rng.integers(-(2**40), 2**40))],
        lambda: x[ag.tensor([0, 2**31], device="cpu")],
        lambda: x.index_select(0, ag.tensor([0, 5000, -7], device=x.device)),
        lambda: x.expand(3, *x.shape).mul_(2),
        lambda: x.unfold(0, 2, 1) if x.ndim else x,
        lambda: x.repeat(draw.pick([2, 2**12, -1]), *[1] * max(x.ndim - 1, 0)) if x.numel() < 300 else x,
        lambda: F.pad(x, (draw.pick([1, -1, 2**14, 2**40]), -1)),
        lambda: ag.arange(0, 10, 1e-3, device="wgpu").reshape(100, 100).T[::-1],
        lambda: ag.arange(2**31 - 3, 2**31 + 3, device="wgpu"),
        lambda: ag.full((3,), draw.pick([2**31 - 1, -(2**31), 2**31, 2**63]), dtype=ag.int64, device="wgpu") + draw.pick([0, 1]),
        lambda: ag.eye(draw.pick([0, 3, 2**17, -1]), device="wgpu"),
        lambda: ag.randn(draw.pick([-1, 0, 3]), device="wgpu"),
        lambda: x.as_strided((2,), (2**33,)) if hasattr(x, "as_strided") else x,
        lambda: (x + 1) * (x.float() if x.dtype is not ag.float64 else x),
        lambda: ag.tensor([2**40], device="wgpu"),
        lambda: x + ag.ones(x.shape),
        lambda: nn.GRU(4, 3).to("wgpu")(x),
    ])()  # fmt: skip


LAYERS = {
    "linear": (lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)), 6),
    "conv": (lambda: nn.Sequential(nn.Unflatten(1, (2, 3, 3)), nn.Conv2d(2, 4, 2), nn.MaxPool2d(2, 1), nn.Flatten()), 18),
    "norm": (lambda: nn.Sequential(nn.LayerNorm(8), nn.Tanh(), nn.BatchNorm1d(8), nn.Dropout(0.3)), 8),
    "gru": (lambda: nn.Sequential(nn.Unflatten(1, (3, 4)), Recurrent(nn.GRU(4, 5, batch_first=True))), 12),
    "lstm": (lambda: nn.Sequential(nn.Unflatten(1, (3, 4)), Recurrent(nn.LSTM(4, 5, 2, batch_first=True))), 12),
    "attention": (lambda: nn.Sequential(nn.Unflatten(1, (3, 8)), nn.TransformerEncoderLayer(8, 2, 16, 0.2, batch_first=True)), 24),
}
# A large eps: where a gradient is nothing but rounding, Adam's step would be its sign.
OPTIMIZERS = [lambda p: optim.SGD(p, 0.05, momentum=0.9), lambda p: optim.AdamW(p, 0.01, eps=0.1),
              lambda p: optim.Adam(p, 0.01, amsgrad=True, eps=0.1), lambda p: optim.RMSprop(p, 0.01, eps=0.1),
              lambda p: optim.Adagrad(p, 0.05, eps=0.1), lambda p: optim.NAdam(p, 0.01, eps=0.1)]  # fmt: skip


class Recurrent(nn.Module):
    """The output of a recurrent layer."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


def training(draw):
    """A function of a device: some steps of a small model."""
    (make, width), optimizer = LAYERS[draw.pick(list(LAYERS))], draw.pick(OPTIMIZERS)
    x = draw.rng.standard_normal((draw.pick([2, 3, 7]), width)).astype(np.float32)
    most, clips, half = draw.pick([1, 3]), draw.chance(0.3), draw.chance(0.2)

    def run(device):
        model = make().to(device)
        trained, total, given = optimizer(model.parameters()), 0.0, ag.tensor(x, device=device)
        for _ in range(most):
            trained.zero_grad()
            with ag.amp.autocast(device.split(":")[0], ag.float16, enabled=half):
                loss = model(given).float().square().mean()
            loss.backward()
            if clips:
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            trained.step()
            total = total + loss.detach()
        return [total, *[p.detach() for p in model.parameters()]]

    return run, 0.05 if half else 5e-3


def on_cpu(x, known):
    """A tensor, or what holds tensors, as it is on the CPU; a leaf is one there. known: those that there are already."""
    if isinstance(x, list | tuple):
        return type(x)(on_cpu(part, known) for part in x)
    if not isinstance(x, ag.Tensor):
        return x
    if id(x) not in known:
        y = x.detach().cpu().requires_grad_(x.requires_grad)
        known[id(x)] = y if x.node is None else y * 1
    return known[id(x)]


def watched(args):
    """The tensors among arguments that ask for a gradient, and will keep it."""
    given = [x for group in args for x in (group if isinstance(group, list | tuple) else [group])]
    given = [x for x in given if isinstance(x, ag.Tensor) and x.requires_grad]
    for x in given:
        x.retain_grad()
    return given


def outcome(function, args, seed, backward):
    """[arrays that a call gives, those of its gradients among them], or its exception."""
    ag.manual_seed(seed)
    wanted = watched(args)
    try:
        y = function(*args)
        parts = [part for part in (y if isinstance(y, tuple | list) else (y,)) if isinstance(part, ag.Tensor)]
        found = [(part.dtype, part.detach().float().numpy() if part.dtype is ag.bfloat16 else part.detach().numpy()) for part in parts]
        for part in parts:
            if backward and part.requires_grad and part.node is not None and part.numel() < 1000:
                part.float().sum().backward()
        return found + [(x.grad.dtype, x.grad.float().numpy()) for x in wanted if x.grad is not None]
    except Exception as error:
        return error


def difference(got, want, tolerance=None):
    """In what the outcomes on wgpu and on the CPU differ, or None."""
    if isinstance(got, Exception) or isinstance(want, Exception):
        both = isinstance(got, Exception) and isinstance(want, Exception)
        known = isinstance(got, OverflowError | NotImplementedError) or isinstance(want, OverflowError)
        return None if known or both or any(said in f"{got} {want}" for said in KNOWN) else f"wgpu: {repr(got)[:200]}; CPU: {repr(want)[:200]}"
    if len(got) != len(want):
        return f"{len(got)} results and gradients, on the CPU {len(want)}"
    for k, ((dtype, a), (_, b)) in enumerate(zip(got, want, strict=True)):
        if a.shape != b.shape:
            return f"result {k}: shapes {a.shape} and {b.shape}"
        a, b = a.astype(np.float64), b.astype(np.float64)
        usual = b[np.isfinite(b)]
        if usual.size and abs(usual).max() > (3e4 if dtype is ag.float16 else 2**31 - 1):
            continue
        bound = tolerance or TOLERANCE.get(dtype, 0.0)
        scale = max(1.0, abs(usual).max()) if usual.size else 1.0
        if not np.allclose(a, b, rtol=bound, atol=bound * scale, equal_nan=True):
            at = np.argmax(~np.isclose(a, b, rtol=bound, atol=bound * scale, equal_nan=True))
            return f"result {k}, {dtype}{a.shape}, at {at}: {a.flat[at]} and {b.flat[at]}"
    return None


def call(seed):
    """(name, outcome, what is wrong with it or None) of a call."""
    draw = Draw(seed)
    kind = draw.rng.random()
    if kind < 0.12:
        return "strange", outcome(lambda: strange(draw), (), seed, False), None
    if kind < 0.15:
        run, bound = training(draw)
        got, want = (outcome(lambda device=device: run(device), (), seed, False) for device in ("wgpu", "cpu"))
        return "training", got, difference(got, want, bound)
    name = draw.pick(NAMES)
    function = FUNCTIONS[name]
    try:
        args = draw.arguments(function)
    except Exception as error:  # what makes them says no
        return name, error, None
    twin = on_cpu(args, {}) if draw.tame and name not in FREE else None
    backward = draw.chance(0.5)
    got = outcome(function, args, seed, backward)
    return name, got, None if twin is None else difference(got, outcome(function, twin, seed, backward))


def works():
    """Whether the device still computes."""
    x = ag.arange(1000, device="wgpu").float()
    return (x * 2 + 1).sum().item() == 1_000_000 and (x[:4].reshape(2, 2) @ x[:4].reshape(2, 2)).tolist() == [[2, 3], [6, 11]]


def main(calls=10_000, seed=0):
    warnings.simplefilter("ignore")
    assert works()
    results, wrong = collections.Counter(), []
    for number in range(seed, seed + calls):
        print(number, flush=True)
        name, got, difference = call(number)
        failed = isinstance(got, Exception)
        results[type(got).__name__ if failed else "result"] += 1
        said = f"{type(got).__name__}: {got}" if failed else ""
        plain = name.startswith("Tensor.") and isinstance(got, AttributeError)  # methods do not look at what is no tensor
        if difference or (not plain and any(part in said for part in SILENT)):
            wrong.append(f"{number}: {name}: {difference or said[:200]}".replace("\n", " "))
            print(wrong[-1], file=sys.stderr, flush=True)
        if number % 100 == 99:
            assert works(), number
    assert works()
    print(f"{calls} calls:", ", ".join(f"{count} {name}" for name, count in results.most_common()))
    for text in wrong:
        print(text)


if __name__ == "__main__":
    main(*[int(word) for word in sys.argv[1:3]])
