"""Matrix products of every layout, size and batch."""

import numpy as np
import pytest

from autograd.webgpu.launch import Matmul

SIZES = [
    (1, 1, 1), (3, 5, 7), (4, 8, 12), (8, 16, 8), (33, 12, 20), (5, 4, 1), (1, 1000, 1),
    (16, 2048, 16), (70, 130, 50), (130, 64, 130), (600, 4, 440),
]  # fmt: skip
BATCHES = [
    ((2, 3, 4, 5), (5, 6)), ((2, 1, 4, 5), (3, 5, 6)), ((3, 4, 8), (3, 8, 12)), ((4, 8), (3, 8, 12)),
    ((2, 3, 4, 8), (1, 1, 8, 4)), ((2, 0, 4), (4, 3)), ((2, 3, 0), (0, 4)), ((0, 3, 4), (4, 5)),
]  # fmt: skip


def swapped(array):
    """The transposed view."""
    *batch, rows, cols = array.shape
    *steps, row, col = array.strides
    return array.view((*batch, cols, rows), (*steps, col, row), array.offset)


def close(got, want, terms):
    """Sums of `terms` products of numbers around 1."""
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6 * max(terms, 1) ** 0.5)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_layouts(size, layout, gpu, rng):
    m, k, n = size
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    a, b = a.astype(np.float32), b.astype(np.float32)
    left = gpu.upload(a) if layout[0] == "n" else swapped(gpu.upload(a.T))
    right = gpu.upload(b) if layout[1] == "n" else swapped(gpu.upload(b.T))
    want = a.astype(np.float64) @ b
    close(gpu.download(Matmul()(left, right)), want, k)
    bias = rng.standard_normal(n).astype(np.float32)
    close(gpu.download(Matmul()(left, right, bias=gpu.upload(bias))), want + bias, k)


@pytest.mark.parametrize("shapes", BATCHES)
def test_batches(shapes, gpu, rng):
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    close(gpu.download(Matmul()(gpu.upload(a), gpu.upload(b))), a @ b, shapes[0][-1])


def test_views(gpu, rng):
    a = rng.standard_normal((9, 11)).astype(np.float32)
    device = gpu.upload(a)
    left = device.view((4, 5), (22, 2), 1)
    right = device.view((5, 6), (-11, 1), 7 * 11 + 3)
    close(gpu.download(Matmul()(left, right)), a[:8:2, 1:10:2] @ a[7:2:-1, 3:9], 5)
    expanded = device.view((3, 9, 11), (0, 11, 1), 0)
    close(gpu.download(Matmul()(expanded, swapped(device))), np.stack([a @ a.T] * 3), 11)


def test_garbage_beyond_the_operand_is_not_read(gpu, rng):
    """Recycled memory holds NaN; a product next to it must not see it."""
    Matmul()(gpu.upload(np.full((6, 7), np.nan, np.float32)), gpu.upload(np.full((7, 6), np.nan, np.float32)))
    a, b = rng.standard_normal((6, 7)).astype(np.float32), rng.standard_normal((7, 6)).astype(np.float32)
    close(gpu.download(Matmul()(gpu.upload(a), gpu.upload(b))), a @ b, 7)


def test_float16(gpu, rng):
    a, b = rng.standard_normal((5, 12)).astype(np.float16), rng.standard_normal((12, 8)).astype(np.float16)
    want = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
    got = gpu.download(Matmul()(gpu.upload(a), gpu.upload(b)))
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, want, rtol=1e-3)


@pytest.mark.parametrize("m, k", [(2, 32768), (2, 40_003), (128, 32768)])
def test_long_k(m, k, gpu, rng):
    """llvmpipe ends an invocation after 65,535 passes of its loops: k is then split."""
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, m)).astype(np.float32)
    got = gpu.download(Matmul()(gpu.upload(a), gpu.upload(b)))
    # A chain of k additions rounds partial sums of size sqrt(k), k times.
    np.testing.assert_allclose(got, a.astype(np.float64) @ b, rtol=0, atol=1.2e-7 * k)
