"""Random calls on wgpu with hostile shapes, dtypes and sizes: `python tests/webgpu/fuzz.py [CALLS [SEED]]`.

Each call ends in a result that can be read, or in a Python exception; the device computes right afterwards. The number
of a call stands on stdout before it runs, so that one that ends the process is known. What went wrong in a way that says
nothing to the user (the driver's words, an AttributeError) is counted by name at the end: there is to be none.
"""

import collections
import inspect
import sys
import warnings

import numpy as np

import autograd as ag

SHAPES = [(), (0,), (1,), (3,), (5,), (64,), (257,), (2, 3), (3, 1), (1, 4), (5, 7), (4, 0, 2), (2, 3, 4), (1, 1, 1, 3)]
SHAPES += [(2,) * 7, (1,) * 9, (2, 1, 2, 1, 2, 1, 2, 1, 2), (70, 33), (20_011,), (1, 3, 8, 8), (2, 2, 5)]
DTYPES = [ag.float32] * 4 + [ag.float16, ag.bfloat16, ag.int64, ag.int32, ag.uint8, ag.bool, ag.float64]
NUMBERS = [0, 1, 2, 3, -1, -2, 7, 0.5, -1.5, 1e30, -1e-30, float("inf"), float("nan"), True, None, 2**31, -(2**40), 1e300]
WORDS = ["sum", "mean", "amax", "none", "constant", "left", "fro", "floor", "wgpu", ""]
# Those whose work is not bounded by what they are given, or that change nothing on a device.
LEFT_OUT = {"repeat_interleave", "combinations", "tile", "repeat", "logspace", "tril_indices", "triu_indices", "unravel_index"}
LEFT_OUT |= {"matrix_power", "vander", "nonzero_static", "histc", "histogram", "bincount", "cartesian_prod", "kron"}
LEFT_OUT |= {name for name in ag.op.PUBLIC if "adaptive" in name or "pad" in name or name.startswith(("new_", "svd", "is_"))}
NAMES = sorted(set(ag.op.PUBLIC) - LEFT_OUT)
SILENT = ("Validation Error", "AttributeError", "KeyError", "UnboundLocal", "NameError", "AssertionError")


def pick(rng, values):
    return values[int(rng.integers(len(values)))]


def array(rng, shape, dtype):
    """Values of a dtype, some of them extreme."""
    if dtype.is_floating_point:
        x = rng.standard_normal(shape) * pick(rng, [1, 1, 1e-3, 1e4])
        strange = rng.random(shape) < 0.05
        return np.where(strange, pick(rng, [np.inf, -np.inf, np.nan, 0.0, 3e38]), x)
    high = {ag.bool: 2, ag.uint8: 256}.get(dtype, pick(rng, [3, 3, 1000, 2**31 - 1]))
    return rng.integers(0 if high <= 256 else -high, high, shape)


def tensor(rng):
    """A tensor on the device, often seen through a view."""
    sizes, dtype, device = pick(rng, SHAPES), pick(rng, DTYPES), pick(rng, ["wgpu"] * 9 + ["cpu"])
    x = ag.tensor(array(rng, sizes, dtype), dtype=dtype, device=device)
    view = pick(rng, ["", "", "", "T", "step", "expand", "flip", "part", "grad", "wait"])
    if view == "T" and x.ndim > 1:
        return x.transpose(0, -1)
    if view in ("step", "part") and x.ndim and x.shape[0] > 1:
        return x[1::2] if view == "step" else x[1:]
    if view == "expand" and x.ndim and x.shape[0] == 1:
        return x.expand(6, *x.shape[1:])
    if view == "flip" and x.ndim:
        return x.flip(-1)
    if view == "grad" and x.is_floating_point():
        return x.requires_grad_()
    return x * 1 if view == "wait" and x.dtype is not ag.bool else x


def fitting(rng, name, first):
    """An argument that the parameter's name asks for."""
    if name in ("dim", "axis", "dim0", "dim1", "dims", "start_dim"):
        return int(rng.integers(-1, max(first.ndim, 1)))
    if name in ("keepdim", "largest", "sorted", "descending", "unbiased", "reverse"):
        return bool(rng.integers(2))
    if name in ("index", "indices"):
        sizes = first.shape if rng.random() < 0.5 else (3,)
        return ag.tensor(rng.integers(-1, 4, sizes), device=first.device)
    if name in ("mask", "condition"):
        return first > 0
    if name in ("tensors", "operands"):
        return [first, first * 1, first]
    if name in ("size", "shape", "sizes"):
        return (-1,) if rng.random() < 0.5 else first.shape
    if name in ("n", "k", "kernel_size", "shifts", "diagonal", "offset", "stride", "length", "chunks", "start", "decimals"):
        return int(rng.integers(-1, 4))
    if rng.random() < 0.7:  # of the same shape and dtype: most functions take such a one
        return (first * 1 if first.dtype is not ag.bool else ~first).detach()
    return tensor(rng)


def arguments(rng, function):
    """Arguments for a function: as many as it asks for, most of them fitting, some not."""
    given = [tensor(rng)]
    wanted = [p for p in inspect.signature(function).parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    if wanted and wanted[0].name in ("tensors", "operands"):
        return [fitting(rng, "tensors", given[0])] if wanted[0].kind is not inspect.Parameter.VAR_POSITIONAL else given * 2
    for p in wanted[1:]:
        if p.default is not p.empty and rng.random() < 0.5:
            break
        given.append(fitting(rng, p.name, given[0]) if rng.random() < 0.85 else argument(rng))
    return given


def argument(rng):
    return pick(rng, [tensor, tensor, tensor, number, number, shape, word, tensors])(rng)


def number(rng):
    return pick(rng, NUMBERS)


def shape(rng):
    return tuple(int(n) for n in rng.integers(-1, 4, rng.integers(0, 5)))


def word(rng):
    return pick(rng, WORDS)


def tensors(rng):
    return [tensor(rng) for _ in range(int(rng.integers(0, 4)))]


def strange(rng):
    """One of the calls that ask for too much."""
    x = tensor(rng)
    huge = ag.ones((), device="wgpu", dtype=pick(rng, [ag.float32, ag.float16, ag.int64]))
    return pick(rng, [
        lambda: ag.zeros(2**20, 2**14, device="wgpu"),
        lambda: ag.full((2**40,), 1.0, device="wgpu"),
        lambda: ag.ones(2**33, dtype=ag.uint8, device="wgpu"),
        lambda: huge.expand(2**17, 2**17) + 1,
        lambda: huge.expand(2**17, 2**14).clone(),
        lambda: ag.cat([huge.expand(2**25)] * 90),
        lambda: huge.expand(2**16, 3) @ huge.expand(3, 2**16 + 1),
        lambda: x.reshape(-1, 2**31),
        lambda: x[int(rng.integers(-(2**40), 2**40))],
        lambda: x[ag.tensor([0, 2**31], device="cpu")],
        lambda: x.index_select(0, ag.tensor([0, 5000, -7], device=x.device)),
        lambda: x.expand(3, *x.shape).mul_(2),
        lambda: x.unfold(0, 2, 1) if x.ndim else x,
        lambda: ag.arange(0, 10, 1e-3, device="wgpu").reshape(100, 100).T[::-1],
        lambda: x.as_strided((2,), (2**33,)) if hasattr(x, "as_strided") else x,
        lambda: (x + 1) * (x.float() if x.dtype is not ag.float64 else x),
        lambda: ag.tensor([2**40], device="wgpu"),
    ])()  # fmt: skip


def call(seed):
    """Make a call and read what it gives."""
    rng = np.random.default_rng(seed)
    if rng.random() < 0.15:
        name, y = "strange", strange(rng)
    else:
        name = pick(rng, NAMES)
        function = ag.op.PUBLIC[name]
        y = function(*arguments(rng, function))
    for part in y if isinstance(y, tuple | list) else (y,):
        if isinstance(part, ag.Tensor):
            if part.requires_grad and part.node is not None and part.numel() < 1000 and rng.random() < 0.5:
                part.float().sum().backward()
            part.numpy() if not part.requires_grad else part.detach().numpy()
    return name


def works():
    """Whether the device still computes."""
    x = ag.arange(1000, device="wgpu").float()
    return (x * 2 + 1).sum().item() == 1_000_000 and (x[:4].reshape(2, 2) @ x[:4].reshape(2, 2)).tolist() == [[2, 3], [6, 11]]


def main(calls=10_000, seed=0):
    warnings.simplefilter("ignore")
    results, silent = collections.Counter(), collections.Counter()
    for number in range(seed, seed + calls):
        print(number, flush=True)
        try:
            call(number)
            results["result"] += 1
        except Exception as error:
            results[type(error).__name__] += 1
            if any(part in f"{type(error).__name__} {error}" for part in SILENT):
                silent[f"{number}: {type(error).__name__}: {str(error)[:160]}".replace("\n", " ")] += 1
        if number % 100 == 99:
            assert works(), number
    assert works()
    print(f"{calls} calls:", ", ".join(f"{count} {name}" for name, count in results.most_common()))
    for text in silent:
        print(text)


if __name__ == "__main__":
    main(*[int(word) for word in sys.argv[1:3]])
