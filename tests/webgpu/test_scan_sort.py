"""Rows long enough to be scanned in parts, and sorted in many dispatches."""

import numpy as np
import pytest

import autograd as ag


@pytest.mark.parametrize("length", (256, 257, 1000, 5000))
def test_long_scans_agree_with_numpy(length, wgpu):
    x = np.random.default_rng(0).uniform(0.99, 1.01, (3, length)).astype(np.float32)
    for name in ("cumsum", "cumprod", "logcumsumexp"):
        got = getattr(ag.tensor(x, device="wgpu"), name)(1).cpu().numpy()
        want = getattr(ag.tensor(x.astype(np.float64)), name)(1).numpy()
        np.testing.assert_allclose(got, want, rtol=2e-5)


def test_long_scan_of_integers_is_exact(wgpu):
    x = np.random.default_rng(0).integers(-9, 9, (700, 2))
    assert (ag.tensor(x, device="wgpu").cumsum(0).cpu().numpy() == np.cumsum(x, 0)).all()
    assert (ag.tensor(x, device="wgpu").cummax(0)[0].cpu().numpy() == np.maximum.accumulate(x, 0)).all()


def test_half_precision_sums_in_single(wgpu):
    ones = ag.ones(4, 1500, dtype=ag.float16, device="wgpu")
    assert ones.cumsum(1)[:, -1].tolist() == [1500.0] * 4


@pytest.mark.parametrize("descending", (False, True))
@pytest.mark.parametrize("dtype", ("float32", "int32", "uint8"))
def test_long_sorts_are_stable(dtype, descending, wgpu):
    x = np.random.default_rng(0).integers(0, 50, (2, 3, 900)).astype(dtype)
    got = ag.tensor(x, device="wgpu").transpose(0, 1).argsort(-1, descending=descending).cpu().numpy()
    want = ag.tensor(x).transpose(0, 1).argsort(-1, descending=descending).numpy()
    assert (got == want).all()


def test_nan_and_zeros_in_order(wgpu):
    x = np.array([0.0, np.nan, -np.inf, -0.0, np.inf, -1.0, 0.0, -np.nan], np.float32)
    assert ag.tensor(x, device="wgpu").argsort().tolist() == [2, 5, 0, 3, 6, 4, 1, 7]
    assert ag.tensor(x, device="wgpu").argsort(descending=True).tolist() == [1, 7, 4, 0, 3, 6, 5, 2]
