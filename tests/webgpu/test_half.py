"""16-bit floating point in pairs: float16 where the adapter has no type for it, bfloat16 everywhere."""

import numpy as np
import pytest
from halves import BFLOAT, HALF, bits, steps_between, values, wide
from hypothesis import given
from hypothesis import strategies as st

import autograd as ag
from autograd.dtypes import converted
from autograd.webgpu.launch import (
    AddWindows,
    Argsort,
    Binary,
    Cat,
    Copy,
    Gather,
    IndexAdd,
    IndexSelect,
    LinearScan,
    Matmul,
    MaxPool,
    Pad,
    Reduce,
    RunningMax,
    Scatter,
    ScatterAdd,
    Softmax,
    SoftmaxBackward,
    Ternary,
    Unary,
    Windows,
    copy_into,
    full,
)
from autograd.webgpu.layout import contiguous_strides


@pytest.fixture(params=["float16", "bfloat16"])
def dtype(request):
    return HALF if request.param == "float16" else BFLOAT


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 65])
def test_odd_lengths_and_views(size, packing, dtype):
    x = values(size, dtype)
    a = packing.upload(x)
    assert packing.download(a).dtype == dtype and a.nbytes == 2 * size
    back = a.view((size - 1,), (-1,), size - 1)
    for got, want in [(a, x), (a.view((size - 1,), (1,), 1), x[1:]), (back, x[:0:-1]), (Copy()(back), x[:0:-1])]:
        np.testing.assert_array_equal(bits(packing.download(got)), bits(want))
    twice = packing.download(Binary("add")(a, a))
    np.testing.assert_array_equal(bits(twice), bits(converted(wide(x) * 2, dtype)))
    np.testing.assert_array_equal(wide(packing.download(full((size,), 3, dtype, packing))), 3)


def test_every_float16_survives(packing):
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    a = packing.upload(x)
    same = packing.download(packing.cast(packing.cast(a, np.float32), np.float16))
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(packing.download(packing.cast(a, np.float32)), x.astype(np.float32))


def test_rounding_is_that_of_numpy(packing, dtype):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(4000) * 2.0 ** rng.integers(-26, 18, 4000)).astype(np.float32)
    x = np.concatenate([x, np.float32([0, -0.0, np.inf, -np.inf, np.nan, 65519, 65520, 1e30, 3.4e38, 1 + 2**-11, 1 + 2**-8])])
    with np.errstate(over="ignore"):
        want = converted(x, dtype)
    got = packing.download(packing.cast(packing.upload(x), dtype))
    np.testing.assert_array_equal(wide(got), wide(want))
    np.testing.assert_array_equal(np.signbit(wide(got)), np.signbit(x))


def launches():
    """Name -> function of a device and a dtype: one call of each launcher, its operands odd in size and place."""
    x, y, square = values((5, 7), HALF), values((5, 7), HALF, 1), values((7, 9), HALF, 2)
    index, rows = np.array([[0, 3, 1, 1, 4, 2, 0]] * 3), np.array([3, 1, 1, 4])

    def on(gpu, x):
        flat = np.concatenate([np.zeros(1, x.dtype), x.reshape(-1)])
        return gpu.upload(flat).view(x.shape, contiguous_strides(x.shape), 1) if x.dtype == HALF else gpu.upload(x)

    def call(launcher, *arrays, **attrs):
        return lambda gpu: launcher(*[on(gpu, a) if isinstance(a, np.ndarray) else a for a in arrays], **attrs)

    large = values((24, 24), HALF, 3)
    found = {f"unary {name}": call(Unary(name), x) for name in ("exp", "sin", "tanh", "neg", "erf", "sqrt", "copy")}
    found |= {f"binary {name}": call(Binary(name), x, y) for name in ("add", "mul", "div", "pow", "maximum")}
    found |= {f"reduce {name}": call(Reduce(name), x, (0,)) for name in ("sum", "prod", "max", "any")}
    found |= {
        "number": call(Binary("mul"), x, 0.3),
        "broadcast": call(Binary("add"), x, y[:1]),
        "compare": call(Binary("lt", out="bool"), x, y),
        "where": call(Ternary("where"), x > 0, x, y),
        "rows": call(Reduce("sum"), x, (1,), True),
        "all": call(Reduce("sum"), large, (0, 1)),
        "argmax": call(Reduce("argmax"), x, 1),
        "softmax": call(Softmax("softmax"), x, 1),
        "log_softmax": call(Softmax("log_softmax"), x, 0),
        "softmax_backward": call(SoftmaxBackward("softmax_backward"), y, x, 1),
        "matmul": call(Matmul(), x, square),
        "bias": call(Matmul(), x, square, square[0]),
        "matmul4": call(Matmul(), large, large),
        "long matmul": call(Matmul(), values((3, 512), HALF), values((512, 3), HALF)),
        "gather": call(Gather(), x, index, axis=0),
        "index_select": call(IndexSelect(), x, rows, axis=0),
        "scatter": call(Scatter(), x, index, y, axis=0),
        "scatter_add": call(ScatterAdd(), x, index, y, axis=0),
        "index_add": call(IndexAdd(), x, rows, y[:4], axis=0),
        "cumsum": lambda gpu: LinearScan("linear_scan")(None, on(gpu, x), 1),
        "cummax": call(RunningMax("running_max"), x, 1),
        "argsort": call(Argsort("argsort"), x, 1, False),
        "cat": lambda gpu: Cat()(on(gpu, x), on(gpu, y[:, :3].copy()), axis=1),
        "pad": call(Pad(), x, ((1, 0), (2, -1)), 9),
        "max_pool": call(MaxPool("max_pool"), x, (3,), (3,), (2,), (1,)),
        "windows": lambda gpu: AddWindows()(Windows()(on(gpu, x), (3,), (3,), (2,), (1,)), (7,), (2,), (1,)),
    }
    return found


def first_output(gpu, y):
    return gpu.download(y[0] if isinstance(y, tuple) else y)


LAUNCHES = launches()


@pytest.mark.parametrize("name", LAUNCHES)
def test_packed_is_within_a_step_of_native(name, gpu, packing):
    if not gpu.info["shader_f16"]:
        return  # then `gpu` packs as well, and the whole suite compares it with NumPy
    native, packed = (first_output(g, LAUNCHES[name](g)) for g in (gpu, packing))
    assert native.dtype == packed.dtype and native.shape == packed.shape
    if native.dtype == HALF:
        assert steps_between(native, packed).max() <= 1
    else:
        np.testing.assert_array_equal(native, packed)


@st.composite
def regions(draw):
    """A part of a two-dimensional array: start, size and step of both dimensions, and whether they are exchanged."""
    parts = []
    for size in (6, 7):
        start, step = draw(st.integers(0, size - 1)), draw(st.sampled_from([1, 1, 2, 3]))
        parts.append((start, draw(st.integers(1, -(-(size - start) // step))), step))
    return parts, draw(st.booleans()), draw(st.booleans())


@given(region=regions())
def test_copy_into_leaves_the_rest_alone(region, packing):
    (rows, cols), turned, number = region
    for dtype in (HALF, BFLOAT):
        x = values((6, 7), dtype)
        a, want = packing.upload(x), x.copy()
        shape, strides = (rows[1], cols[1]), (7 * rows[2], cols[2])
        target = a.view(shape, strides, 7 * rows[0] + cols[0])
        place = want[rows[0] :: rows[2], cols[0] :: cols[2]][: rows[1], : cols[1]]
        source = values(shape[::-1] if turned else shape, dtype, 1)
        b = packing.upload(source)
        if turned:
            b, source = b.view(shape, (1, shape[0]), 0), source.T
        place[...] = converted(np.full(shape, 2.5, np.float32), dtype) if number else source
        copy_into(target, 2.5 if number else b)
        np.testing.assert_array_equal(bits(packing.download(a)), bits(want))


def test_copy_into_overlapping_itself(packing, dtype):
    x = values(9, dtype)
    a = packing.upload(x)
    copy_into(a.view((8,), (1,), 1), a.view((8,), (1,), 0))
    np.testing.assert_array_equal(bits(packing.download(a)), bits(np.concatenate([x[:1], x[:8]])))


def test_bytes_are_halved(packing, dtype):
    before, uploaded = packing.pool.live()[1], packing.counters["bytes_uploaded"]
    x = packing.upload(values(1 << 14, dtype))
    y = Unary("exp")(x)
    y.storage
    assert packing.pool.live()[1] - before == 2 * (2 << 14) and packing.counters["bytes_uploaded"] - uploaded == 2 << 14


def test_devices_say_which_path(gpu):
    said = ag.wgpu.devices()[0]
    assert said["float16"].startswith("native" if gpu.info["shader_f16"] else "packed")
    assert said["bfloat16"].startswith("packed")


def test_a_kernel_that_knows_nothing_of_packing(packing, dtype):
    """Its launcher gives it a packed array to write: a float32 twin is written and packed afterwards."""
    x = values(7, dtype)
    order, a, y = packing.upload(np.array([2, 0, 6])), packing.upload(x), packing.upload(values(8, dtype, 1))
    kept = packing.download(y)
    kernel = packing.kernel("gather", ("params",), E=packing.types[dtype][1])
    words = [0, 0, 0, 0, 0, 0, 0, 0, 3, 1, 1, 0, 3, 1, 0, 0]
    packing.run(kernel, (order, a, y), words, 1)
    np.testing.assert_array_equal(bits(packing.download(y)), bits(np.concatenate([x[[2, 0, 6]], kept[3:]])))
