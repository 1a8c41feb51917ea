"""Reductions over any axes, layout and length."""

import itertools

import numpy as np
import pytest

from autograd.webgpu.launch import Reduce

FOLDS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
AXES = [axes for n in range(4) for axes in itertools.combinations(range(3), n)]
LONG = [(1000,), (64, 300), (300, 64), (4, 8192), (3, 70, 64), (70001,), (66000, 3), (500, 4), (300, 2, 2)]


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("name", FOLDS)
def test_axes(name, axes, gpu, check, rng):
    x = rng.standard_normal((3, 4, 8)).astype(np.float32)
    device = gpu.upload(x)
    swapped = device.view((8, 4, 3), device.strides[::-1], 0)
    for keepdims in (False, True):
        want = FOLDS[name](x, axis=axes, keepdims=keepdims)
        check(Reduce(name)(device, axes, keepdims), want)
        want = FOLDS[name](x.T, axis=axes, keepdims=keepdims)
        check(Reduce(name)(swapped, axes, keepdims), want)


@pytest.mark.parametrize("shape", LONG)
def test_long(shape, gpu, check, rng):
    x = rng.standard_normal(shape).astype(np.float32)
    device = gpu.upload(x)
    for axis in range(len(shape)):
        exact = x.astype(np.float64).sum(axis)
        check(Reduce("sum")(device, (axis,)), exact.astype(np.float32), atol=1e-6 * x.shape[axis] ** 0.5)
        check(Reduce("max")(device, (axis,)), x.max(axis))
        check(Reduce("argmax")(device, axis), x.argmax(axis))
        check(Reduce("argmin")(device, axis, True), np.expand_dims(x.argmin(axis), axis))
    check(Reduce("argmax")(device, None), np.array(x.argmax()))


def test_sums_repeat_to_the_bit(gpu, rng):
    x = gpu.upload(rng.standard_normal(50_000).astype(np.float32))
    first = gpu.download(Reduce("sum")(x, (0,)))
    assert all(gpu.download(Reduce("sum")(x, (0,))) == first for _ in range(3))


def test_nan_travels(gpu, check):
    x = np.array([[1, np.nan, 3], [4, 5, 6], [-np.inf, np.nan, np.nan]], np.float32)
    device = gpu.upload(x)
    for name in FOLDS:
        check(Reduce(name)(device, (1,)), FOLDS[name](x, axis=1))
    for name in ("argmax", "argmin"):
        check(Reduce(name)(device, 1), getattr(np, name)(x, 1))


def test_first_of_equals(gpu, check):
    x = np.zeros((3, 700), np.float32)
    check(Reduce("argmax")(gpu.upload(x), 1), np.zeros(3, np.int64))
    check(Reduce("argmin")(gpu.upload(x), None), np.array(0))


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int32, np.int64])
def test_integers(dtype, gpu, check, rng):
    x = rng.integers(0, 2 if dtype == np.bool_ else 3, (5, 300)).astype(dtype)
    device = gpu.upload(x)
    check(Reduce("sum")(device, (1,)), x.sum(1, dtype=np.int64))
    check(Reduce("sum")(device, (0,), dtype=np.dtype(np.float32)), x.sum(0).astype(np.float32))
    check(Reduce("any")(device, (0,)), x.any(0))
    check(Reduce("max")(device, (1,)), x.max(1))
    check(Reduce("min")(device, (0, 1)), x.min())


def test_nothing_to_fold(gpu, check):
    x = gpu.upload(np.zeros((0, 3), np.float32))
    check(Reduce("sum")(x, (0,)), np.zeros(3, np.float32))
    check(Reduce("prod")(x, (0,), True), np.ones((1, 3), np.float32))
    check(Reduce("sum")(x, (1,)), np.zeros(0, np.float32))


def test_float16_sums_in_float32(gpu, check):
    x = np.full(5000, 0.1, np.float16)
    want = x.astype(np.float64).sum().astype(np.float16)
    check(Reduce("sum")(gpu.upload(x), (0,)), np.array(want))


def test_a_million(gpu, check, rng):
    x = rng.standard_normal(1 << 20).astype(np.float32)
    device = gpu.upload(x)
    check(Reduce("sum")(device, (0,)), np.array(x.astype(np.float64).sum().astype(np.float32)), atol=2e-4)
    check(Reduce("argmax")(device, 0), np.array(x.argmax()))
    check(Reduce("max")(device.view((1 << 20,), (-1,), (1 << 20) - 1), (0,)), np.array(x.max()))
