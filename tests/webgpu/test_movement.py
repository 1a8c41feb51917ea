"""Transfers, copies, casts through strides, fills, cat and pad."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograd import webgpu
from autograd.webgpu.launch import Binary, Cat, Copy, Pad, Unary, copy_into, full

DTYPES = [np.float32, np.int32, np.int64, np.uint8, np.bool_]
SHAPES = [(), (1,), (0,), (5,), (3, 0, 2), (2, 3, 4), (1, 1, 7)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_round_trip(shape, dtype, gpu, rng):
    x = np.asarray(rng.integers(0, 2, shape) if dtype == np.bool_ else rng.integers(0, 100, shape)).astype(dtype)
    y = gpu.download(gpu.upload(x))
    assert y.dtype == x.dtype and y.shape == x.shape
    assert y.flags.c_contiguous and y.flags.writeable
    np.testing.assert_array_equal(y, x)


def test_upload_reads_any_layout(gpu, check, rng):
    x = rng.standard_normal((3, 4)).astype(np.float32)
    for view in (x.T, x[::-1], x[:, ::2], np.broadcast_to(x[0], (5, 4)), np.asfortranarray(x)):
        check(gpu.upload(view), view)


def test_downloads_do_not_share(gpu):
    x = gpu.upload(np.zeros(4, np.float32))
    first = gpu.download(x)
    first[:] = 7
    np.testing.assert_array_equal(gpu.download(x), 0)


def test_refusals(gpu):
    with pytest.raises(TypeError, match="float64 has no type in WGSL; use float32"):
        gpu.upload(np.zeros(3))
    with pytest.raises(TypeError, match="complex64"):
        gpu.upload(np.zeros(3, np.complex64))
    with pytest.raises(OverflowError, match="4294967296"):
        gpu.upload(np.array([1, 2**32]))
    with pytest.raises(ValueError, match="buffers hold at most"):
        gpu.empty((2**31,), np.float32)
    with pytest.raises(ValueError, match="32 bits"):
        gpu.empty((2**33,), np.float32)
    with pytest.raises(OverflowError, match="integer kernels"):
        Binary("add")(gpu.upload(np.zeros(3, np.int64)), 2**40)
    with pytest.raises(ValueError, match="at most 8 dimensions"):
        Copy()(gpu.upload(np.zeros(9, np.float32)).view((2,) * 9, (0, 1) * 4 + (0,), 0))


@st.composite
def views(draw):
    """A shape of up to five dimensions and, per dimension, how it is walked."""
    shape = draw(st.lists(st.integers(1, 4), min_size=0, max_size=5))
    order = draw(st.permutations(range(len(shape))))
    steps = draw(st.lists(st.sampled_from([1, -1, 2, 0]), min_size=len(shape), max_size=len(shape)))
    return tuple(shape), tuple(order), tuple(steps)


def apply_view(x, array, order, steps):
    """The same permutation, slicing and repetition of a NumPy array and of its Array."""
    x = x.transpose(order)
    shape, strides, offset = [], [], array.offset
    for d, (axis, step) in enumerate(zip(order, steps)):
        size, stride = array.shape[axis], array.strides[axis]
        if step == 0:
            x = np.repeat(np.take(x, [0], d), size, d)
            count = size
        else:
            x = x[(slice(None),) * d + (slice(None, None, step),)]
            count = -(-size // abs(step))
            if step < 0:
                offset += (size - 1) * stride
        shape.append(count)
        strides.append(stride * step)
    return x, array.view(shape, strides, offset)


@given(view=views())
def test_kernels_read_any_view(gpu, check, view):
    shape, order, steps = view
    base = np.arange(int(np.prod(shape)) + 3, dtype=np.float32)[3:].reshape(shape)
    padded = gpu.upload(np.arange(base.size + 3, dtype=np.float32))
    device = padded.view(shape, [s // 4 for s in base.strides], 3)
    x, array = apply_view(base, device, order, steps)
    check(array, x)
    check(Copy()(array), x)
    check(Unary("neg")(array), -x)
    check(Binary("add")(array, array), x + x)
    row = x[..., :1] if x.ndim else x
    narrow = array.view(row.shape, array.strides, array.offset)
    check(Binary("sub")(array, narrow), x - row)


@given(view=views())
def test_copy_into_writes_any_view(gpu, view):
    shape, order, steps = view
    steps = tuple(step or 1 for step in steps)
    x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    device = gpu.upload(x)
    target, array = apply_view(x.copy(), device, order, steps)
    copy_into(array, gpu.upload(-target))
    places, _ = apply_view(np.arange(x.size).reshape(shape), device, order, steps)
    want = x.ravel().copy()
    want[places.ravel()] *= -1
    np.testing.assert_array_equal(gpu.download(device).ravel(), want)


def test_copy_into_overlapping_itself(gpu, check):
    x = gpu.upload(np.arange(6, dtype=np.float32))
    copy_into(x.view((5,), (1,), 1), x.view((5,), (1,), 0))
    check(x, np.array([0, 0, 1, 2, 3, 4], np.float32))
    copy_into(x.view((6,), (-1,), 5), x)
    check(x, np.array([4, 3, 2, 1, 0, 0], np.float32))


def test_copy_into_leaves_the_rest_alone(gpu, check):
    for start, count in ((0, 4), (4, 4), (1, 3), (8, 2)):
        x = gpu.upload(np.zeros(10, np.float32))
        copy_into(x.view((count,), (1,), start), 7)
        want = np.zeros(10, np.float32)
        want[start : start + count] = 7
        check(x, want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_full(dtype, gpu, check):
    for shape in SHAPES:
        check(full(shape, 1, dtype, gpu), np.ones(shape, dtype))


def test_full_of_extremes(gpu, check):
    for value in (np.inf, -np.inf, np.nan, 1e300):
        with np.errstate(over="ignore"):
            check(full((3,), value, np.float32, gpu), np.full(3, np.float32(value)))
    with pytest.raises(OverflowError, match="does not fit"):
        full((3,), 2**31, np.int64, gpu)


def test_cat_and_pad(gpu, check, rng):
    x = rng.standard_normal((2, 3, 4)).astype(np.float32)
    y = rng.standard_normal((2, 1, 4)).astype(np.float32)
    empty = np.zeros((2, 0, 4), np.float32)
    device = [gpu.upload(v) for v in (x, empty, y)]
    check(Cat()(*device, axis=1), np.concatenate([x, y], 1))
    swapped = device[0].view((4, 3, 2), device[0].strides[::-1], 0)
    check(Cat()(swapped, swapped, axis=0), np.concatenate([x.T, x.T], 0))
    want = np.pad(x[:, :2], ((1, 0), (0, 0), (2, 1)), constant_values=9)
    check(Pad()(device[0], ((1, 0), (0, -1), (2, 1)), 9), want)


def test_more_workgroups_than_one_dimension_holds(gpu):
    n = 65536 * 64 + 5
    x = gpu.upload(np.arange(n, dtype=np.int32))
    backwards = x.view((n,), (-1,), n - 1)
    y = gpu.download(Copy()(backwards))
    assert y[0] == n - 1 and y[-1] == 0 and y[65535 * 64 + 1] == n - 2 - 65535 * 64


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 65])
def test_float16(size, gpu, check, rng):
    x = rng.standard_normal(size).astype(np.float16)
    a = gpu.upload(x)
    check(a, x)
    want = (x.astype(np.float32) * 2).astype(np.float16)
    check(Binary("add")(a, a), want)
    check(a.view((size - 1,), (1,), 1), x[1:])
    check(Binary("add")(a.view((size - 1,), (1,), 1), a.view((size - 1,), (-1,), size - 1)), x[1:] + x[:0:-1])
    check(full((size,), 3, np.float16, gpu), np.full(size, 3, np.float16))


def test_devices_say_what_they_are(gpu):
    first = webgpu.devices()[0]
    assert first["name"] == gpu.name and first["backend"] == "Vulkan"
    assert first["limits"]["max-buffer-size"] > 0
