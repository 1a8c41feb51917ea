"""Small things that several tests use."""

import numpy as np
import pytest

import autograd as ag

# |got - want| <= tolerance * max(1, |want|), by device and dtype: a few roundings; GPUs' functions have more.
TOLERANCE = {
    ("cpu", "float64"): 1e-12,
    ("cpu", "float32"): 2e-6,
    ("cpu", "float16"): 2e-3,
    ("wgpu", "float32"): 1e-5,
    ("wgpu", "float16"): 2e-3,
}


def array(x):
    """A tensor's values as a NumPy array, wherever it is."""
    return x.detach().cpu().numpy() if isinstance(x, ag.Tensor) else np.asarray(x)


def assert_close(got, want, tolerance=None, where=""):
    """Same shape, and equal within the tolerance of got's device and dtype; NaN equals NaN, infinities their own."""
    if tolerance is None:
        tolerance = TOLERANCE.get((got.device.type, got.dtype.name), 0)
    a, b = array(got), array(want)
    assert a.shape == b.shape, f"{where} shape {a.shape}, expected {b.shape}"
    a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):
        close = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= tolerance * np.maximum(1, np.abs(b)))
    if not close.all():
        at = tuple(int(i) for i in np.argwhere(~close)[0])
        raise AssertionError(f"{where} at {at}: got {a[at]!r}, expected {b[at]!r}; {(~close).sum()} of {close.size} differ")


def assert_raises(kind, text, function):
    """function() raises exactly this class, and its message holds this text."""
    with pytest.raises(kind) as caught:
        function()
    assert type(caught.value) is kind
    assert text in str(caught.value), str(caught.value)
