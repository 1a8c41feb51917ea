"""Every op and every public composite, from its row in the tables: values, gradients, layouts, devices, errors."""

import re
from pathlib import Path

import numpy as np
import pytest
from composite_table import COMPOSITES
from helpers import array, assert_close, assert_raises
from op_cases import inputs
from op_table import TABLE

import autograd as ag
from autograd.op import HOST_OPS, REGISTRY

ROOT = Path(__file__).resolve().parents[1]
ROWS = {**TABLE, **COMPOSITES}
DIFFERENTIABLE = [name for name, row in ROWS.items() if row.gradient]
LINEAR = [name for name, row in ROWS.items() if row.linear]
FUSED = [name for name, op in REGISTRY.items() if op.has_fused]
# Ops that are reached through others and have no function of their own name.
INTERNAL = {
    "add_windows", "attention", "attention_backward", "cast", "cross_entropy", "eigh", "erfcx", "gru", "gru_backward", "gru_before", "gru_before_backward", "gru_block_cell",
    "i0e", "i1e", "linear", "linear_scan",
    "lstm", "lstm_backward", "rnn", "rnn_backward", "rnn_segment",
    "max_pool", "move", "pinv", "place", "running_max", "set_view", "slice", "solve", "unfold", "windows",
}  # fmt: skip
# Kernels that several ops share, or that an op needs several of.
SHARED = {"amax": "max", "amin": "min", "clone": "copy", "contiguous": "copy"}


def named(names):
    """A test for each name. What tests one op goes to one process, which compiles its kernels once."""
    return pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in names])


def runs(row):
    for number, case in enumerate(row.cases):
        for shapes in case.shapes:
            yield case, shapes, f"case {number}, shapes {shapes}:"


def place(arrays, device, grad=False):
    return [ag.tensor(a, device=device, requires_grad=grad and a.dtype.kind == "f") for a in arrays]


def gradients(call, tensors, seed=3, **kwargs):
    """The result and the gradients of its product with random numbers."""
    y = call(*tensors)
    dy = np.random.default_rng(seed).uniform(-1, 1, y.shape).astype(y.array.dtype)
    return y, ag.grad(y, tensors, ag.tensor(dy, device=y.device), allow_unused=True, **kwargs)


def tolerance(row, device):
    return row.tolerance.get(device) if device in row.tolerance else None


# -- values and gradients -----------------------------------------------------------------------------------


@named(ROWS)
def test_forward(name, device):
    row = ROWS[name]
    for dtype in row.dtypes:
        if device == "wgpu" and dtype == "float64":
            continue
        for case, shapes, where in runs(row):
            arrays = inputs(case, shapes, dtype)
            got = case.call(*place(arrays, device))
            kind = {"f": np.float64, "b": np.bool_}.get(arrays[0].dtype.kind, np.int64)
            want = np.asarray(case.reference(*(a.astype(kind) for a in arrays)))
            assert got.device == device
            if want.size and isinstance(want.reshape(-1)[0], bool | np.bool_):
                assert got.dtype is ag.bool, where
            elif dtype.startswith("float") and got.dtype.is_floating_point:
                assert got.dtype.name == dtype, where
            limit = None if dtype == "float16" else tolerance(row, device)
            assert_close(got, want.astype(np.float64), limit, f"{dtype}, {where}")


@named(DIFFERENTIABLE)
@pytest.mark.parametrize("check", [ag.gradcheck, ag.gradgradcheck])
def test_gradient(name, check):
    for case, shapes, _ in runs(ROWS[name]):
        if not ROWS[name].rounds:
            tensors = place(inputs(case, shapes, "float64"), "cpu", grad=True)
            assert check(case.call, tensors, fast_mode=sum(x.numel() for x in tensors) > 24)


@named(DIFFERENTIABLE)
def test_gradient_is_the_same_on_wgpu(name, wgpu):
    row = ROWS[name]
    for case, shapes, where in runs(row):
        arrays = inputs(case, shapes, "float32")
        (y, grads), (want, wanted) = (gradients(case.call, place(arrays, d, grad=True)) for d in ("wgpu", "cpu"))
        assert_close(y, want, tolerance(row, "wgpu"), where)
        for g, w in zip(grads, wanted):
            assert (g is None) == (w is None), where
            if g is not None:
                assert g.device == "wgpu"
                assert_close(g, w, tolerance(row, "wgpu"), where)


@named(FUSED)
def test_fused_gradient_equals_the_formula(name, device):
    for case, shapes, where in runs(ROWS[name]):
        tensors = place(inputs(case, shapes, "float32"), device, grad=True)
        _, fused = gradients(case.call, tensors)
        _, formula = gradients(case.call, tensors, create_graph=True)
        for a, b in zip(fused, formula):
            assert_close(a, b, where=where)


@named(LINEAR)
def test_gradient_is_the_adjoint(name, device):
    """<A x, y> = <x, A' y>: the transpose is right for every y, without differences."""
    row = ROWS[name]
    for case, shapes, where in runs(row):
        tensors = place(inputs(case, shapes, "float32"), device, grad=True)
        base = array(case.call(*[x.zeros_like() for x in tensors])).astype(np.float64)
        y, grads = gradients(case.call, tensors)
        dy = np.random.default_rng(3).uniform(-1, 1, y.shape)
        left = ((array(y) - base) * dy).sum()
        parts = [0.0 if g is None else (array(x).astype(np.float64) * array(g)).sum() for x, g in zip(tensors, grads)]
        for right in parts if row.linear == "each" else [sum(parts)]:
            assert abs(left - right) <= 1e-5 * max(1, *(abs(p) for p in parts)), where


# -- layouts ------------------------------------------------------------------------------------------------


def transposed(a, device):
    return ag.tensor(a.T.copy(), device=device).permute(*range(a.ndim)[::-1])


def sliced(a, device):
    wide = np.full([2 * n + 3 for n in a.shape], 7, a.dtype)
    index = tuple(slice(1, 1 + 2 * n, 2) for n in a.shape)
    wide[index] = a
    return ag.tensor(wide, device=device)[index]


def reversed_(a, device):
    return ag.tensor(np.flip(a).copy(), device=device)[(slice(None, None, -1),) * a.ndim]


def expanded(a, device):
    return ag.tensor(a[:1].copy() if a.ndim else a, device=device).expand(*a.shape)


LAYOUTS = (transposed, sliced, reversed_, expanded)


def layouts(row):
    """Each case with its inputs of most dimensions, in each layout."""
    for case in row.cases:
        shapes = max(case.shapes, key=lambda s: max(len(x) for x in s))
        dtype = next(d for d in ("float32", *row.dtypes) if d in row.dtypes)
        for layout in LAYOUTS:
            arrays = inputs(case, shapes, dtype)
            if layout is expanded:
                arrays = [np.repeat(a[:1], len(a), 0) if a.ndim else a for a in arrays]
            yield case, layout, arrays, row.gradient and dtype == "float32"


@named(ROWS)
def test_layout_changes_nothing(name, device):
    row = ROWS[name]
    for case, layout, arrays, grad in layouts(row):
        odd = [layout(a, device).detach().requires_grad_(grad) for a in arrays]
        plain = place(arrays, device, grad)
        where = f"case {row.cases.index(case)}, {layout.__name__}:"
        if not grad:
            assert_close(case.call(*odd), case.call(*plain), where=where)
            continue
        (y, grads), (want, wanted) = (gradients(case.call, tensors) for tensors in (odd, plain))
        assert_close(y, want, tolerance(row, device), where)
        for g, w in zip(grads, wanted):
            if w is not None:
                assert_close(g, w, tolerance(row, device), where)


# -- errors -------------------------------------------------------------------------------------------------


@named([name for name, row in ROWS.items() if row.errors])
def test_errors(name, device):
    for kind, text, function in ROWS[name].errors:
        assert_raises(kind, text, lambda function=function: function(device))


# -- the table and the registry -----------------------------------------------------------------------------


def test_every_op_has_a_row():
    assert sorted(REGISTRY) == sorted(TABLE)
    assert {name for name, op in REGISTRY.items() if op.differentiable} == {name for name, row in TABLE.items() if row.gradient}


@named([name for name in DIFFERENTIABLE if name in TABLE and name != "move"])
def test_row_runs_its_op(name):
    case = TABLE[name].cases[-1 if name == "reshape" else 0]
    y = case.call(*place(inputs(case, case.shapes[0], "float32"), "cpu", grad=True))
    assert name in [entry.op for entry in ag.tape(y)]


@named(TABLE)
def test_names_agree(name):
    """Class, registry key, function and shader carry one name; so does the row, which is the test's id."""
    op = REGISTRY[name]
    assert op.name == name
    assert op.__name__.rstrip("_").lower() == name.replace("_", "")
    assert op.__doc__ and re.fullmatch(r"(dx|d\w+|no gradient).*", op.__doc__.splitlines()[1].strip()), op.__doc__
    if name not in INTERNAL:
        assert callable(getattr(ag, name, None) or getattr(ag.Tensor, name))
    shader = getattr(op.wgpu, "name", None)
    if shader is not None and name not in HOST_OPS:
        assert shader == SHARED.get(name, name)
        assert (ROOT / "wgsl" / f"{shader}.wgsl").is_file()


def test_every_shader_is_used():
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "autograd").rglob("*.py"))
    quoted = set(re.findall(r"\"(\w+)\"", sources)) | {f"to_{kind}" for kind in ("f32", "i32", "u32")}
    assert sorted(path.stem for path in (ROOT / "wgsl").glob("*.wgsl") if path.stem not in quoted) == []
