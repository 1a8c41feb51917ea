"""Kernels of the user's own."""

import numpy as np
import pytest
from helpers import array, assert_raises

import autograd as ag

SCALE = """
struct Params { factor: f32, shift: i32, n: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < p.n) { y[id.x] = p.factor * x[id.x] + f32(p.shift); }
}
"""
COUNT = """
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k: array<i32>;
@group(0) @binding(3) var<storage, read_write> lengths: array<i32>;
@compute @workgroup_size(8, 4)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    if (id.x == 0u && id.y == 0u) {
        lengths[0] = i32(arrayLength(&x));
        lengths[1] = i32(arrayLength(&k));
        lengths[2] = i32(groups.x);
        lengths[3] = i32(groups.y);
        lengths[4] = k[arrayLength(&k) - 1u];
    }
}
"""
INPLACE = """
@group(0) @binding(1) var<storage, read_write> a: array<f32>; // @binding(7) in a comment is none
@group(0) @binding(2) var<storage, read_write> b: array<u32>;
@compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3<u32>) { a[id.x] += 1.0; b[id.x] = 1u - b[id.x]; }
"""


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_values_parameters_and_views(wgpu):
    scale = ag.wgpu.kernel(SCALE, "scale")
    x = ag.tensor(numbers(6, 50), device=wgpu)
    for view in (x, x.T, x[1:, ::3], x[:1].expand(4, 50), x + 1):
        y = scale(view, ag.empty(view.shape, device=wgpu), threads=view.numel(), factor=2, shift=-3, n=view.numel())
        np.testing.assert_array_equal(array(y), 2 * array(view) - 3)
    y = ag.zeros(300, device=wgpu)
    assert scale(x, y, threads=300, factor=1.0, shift=0, n=10) is y
    assert array(y)[:10].tolist() == array(x).ravel()[:10].tolist() and not array(y)[10:].any()


def test_lengths_are_the_tensors_and_workgroups_are_rounded_up(wgpu):
    count = ag.wgpu.kernel(COUNT)
    k, lengths = ag.arange(5, device=wgpu), ag.zeros(5, dtype=ag.int32, device=wgpu)
    got = count(ag.zeros(3, 8, device=wgpu), k, lengths, threads=(17, 4))
    assert got.tolist() == [6, 5, 3, 1, 4]


def test_in_place_in_program_order(wgpu):
    kernel = ag.wgpu.kernel(INPLACE)
    a, b = ag.zeros(4, device=wgpu), ag.tensor([True, False, True, False], device=wgpu)
    waiting, version = a + 10, a._version  # reads a's old values, although it is computed later
    assert kernel(a, b, threads=4) == (a, b)
    doubled = a * 2
    kernel(a, b, threads=2)
    assert (a.tolist(), b.tolist()) == ([2, 2, 1, 1], [True, False, False, True])
    assert (waiting.tolist(), doubled.tolist()) == ([10] * 4, [2] * 4)
    assert a._version == version + 2
    x = ag.ones(4, device=wgpu, requires_grad=True)
    y = x * a
    kernel(a, b, threads=4)
    assert_raises(RuntimeError, "changed in place", y.sum().backward)


def test_compiled_once_and_launched_in_one_dispatch(wgpu):
    kernels = [ag.wgpu.kernel(SCALE, "once") for _ in range(2)]
    x, y = ag.tensor(numbers(8), device=wgpu), ag.tensor(numbers(8), device=wgpu)
    for i in range(3):
        ag.wgpu.synchronize()
        ag.wgpu.reset_stats()
        kernels[i % 2](x, y, threads=8, factor=1.0, shift=0, n=8)
        ag.wgpu.synchronize()
        stats = ag.wgpu.stats()
        assert (stats["dispatches"], stats["pipelines"], stats["bytes_downloaded"]) == (1, int(i == 0), 0)
    ag.wgpu.reset_stats()
    kernels[0](x, y, threads=0, factor=1.0, shift=0, n=8)
    assert ag.wgpu.stats()["dispatches"] == 0


def test_float16(wgpu):
    if not ag.wgpu.devices()[0]["shader_f16"]:
        return
    text = SCALE.replace("array<f32>", "array<f16>").replace("p.factor * x[id.x] + f32(p.shift)", "f16(p.factor) * x[id.x]")
    kernel = ag.wgpu.kernel(text)
    x = ag.tensor(numbers(6), dtype=ag.float16, device=wgpu)
    y = kernel(x, ag.zeros_like(x), threads=6, factor=2, shift=0, n=6)
    assert array(y).tolist() == (2 * array(x)).tolist()
    odd = x[:3].clone()
    assert_raises(ValueError, "multiples of 4 bytes", lambda: kernel(odd, ag.zeros_like(odd), threads=3, factor=2, shift=0, n=3))


SOURCES = [
    (SCALE.replace("fn main", "fn other"), "entry point"),
    (SCALE.replace("(64)", "(SIZE)"), "workgroup_size"),
    (SCALE.replace("binding(2)", "binding(3)"), "without a gap; got [1, 3]"),
    (SCALE.replace("factor: f32", "factor: vec2<f32>"), "each f32, i32 or u32"),
    (SCALE.replace("read> x: array<f32>", "read> x: array<Params>"), "buffer x is array"),
    ("@compute @workgroup_size(1) fn main() {}", "without a gap; got []"),
]


@pytest.mark.parametrize(("source", "text"), SOURCES)
def test_sources_that_are_refused_without_a_device(source, text):
    assert_raises(ValueError, text, lambda: ag.wgpu.kernel(source))


def test_compile_errors_name_the_line(wgpu):
    kernel = ag.wgpu.kernel(SCALE.replace("f32(p.shift)", "p.shift"), "wrong")
    x = ag.zeros(4, device=wgpu)
    with pytest.raises(RuntimeError, match=r"(?s)did not compile: wrong\.wgsl.*wrong:8:.*p\.shift"):
        kernel(x, ag.zeros(4, device=wgpu), threads=4, factor=1, shift=0, n=4)
    assert (x + 1).tolist() == [1] * 4


def test_calls_that_are_refused(wgpu):
    scale = ag.wgpu.kernel(SCALE, "scale")
    x, y = ag.zeros(8, device=wgpu), ag.zeros(8, device=wgpu)
    options = {"threads": 8, "factor": 1.0, "shift": 0, "n": 8}
    cases = [
        (TypeError, "takes 2 tensors (x: f32, y: f32); got 1", (x,), {}),
        (TypeError, "x is a Tensor; got ndarray", (numbers(8), y), {}),
        (RuntimeError, "x is on cpu", (ag.zeros(8), y), {}),
        (TypeError, "x holds f32, as float32 do; got", (x.to(ag.int32), y), {}),
        (ValueError, "must have elements", (x[:0], y), {}),
        (ValueError, "y is written, so it is no view", (x, y[::2]), {}),
        (ValueError, "y is written, so it is no view", (x, y[4:]), {}),
        (ValueError, "given twice", (x, x), {}),
        (RuntimeError, "records no gradient", (ag.zeros(8, device=wgpu, requires_grad=True), y), {}),
        (TypeError, "missing ['n'], unknown ['m']", (x, y), {"m": 1, "n": None}),
        (TypeError, "shift is a number of type i32; got 0.5", (x, y), {"shift": 0.5}),
        (TypeError, "factor is a number", (x, y), {"factor": "1"}),
        (ValueError, "n = -1 does not fit into u32", (x, y), {"n": -1}),
        (ValueError, "not negative", (x, y), {"threads": (1, -1)}),
        (ValueError, "at most 65,535 workgroups", (x, y), {"threads": 64 * 65536}),
    ]
    for kind, text, tensors, changed in cases:
        given = {**options, **changed}
        if "m" in given:
            del given["n"]
        assert_raises(kind, text, lambda tensors=tensors, given=given: scale(*tensors, **given))
    with ag.no_grad():
        scale(ag.ones(8, device=wgpu, requires_grad=True), y, **options)
    assert y.tolist() == [1] * 8
