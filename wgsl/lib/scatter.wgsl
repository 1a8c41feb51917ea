// y = x, and along one axis y[.., index[.., t, ..], ..] = join(that, src[.., t, ..]).
// Each element of y has its own invocation, which looks through the axis in order: no float
// atomics, and the result repeats to the bit.
struct Params {
  offset: vec4<u32>,             // of x, index and src
  n: u32,
  rank: u32,
  axis: u32,
  length: u32,                   // of index along the axis
  step: vec4<u32>,               // strides of index and src along the axis
  limits: array<vec4<u32>, 2>,   // index's sizes, which may be smaller than x's
  dims: array<vec4<u32>, 8>,     // size of x, strides of x, index and src; 0 on the axis
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<E>;
@group(0) @binding(2) var<storage, read> index: array<i32>;
@group(0) @binding(3) var<storage, read> src: array<E>;
@group(0) @binding(4) var<storage, read_write> y: array<S>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = g.x + g.y * w.x * 64u;
  let live = i < p.n;
  var rest = i;
  var at = p.offset.xyz;
  var here = 0u;
  var reached = true;
  for (var d = select(0u, p.rank, live); d > 0u; d--) {
    let dim = p.dims[d - 1u];
    let next = rest / dim.x;
    let k = rest - next * dim.x;
    at += k * dim.yzw;
    rest = next;
    if (d - 1u == p.axis) {
      here = k;
    } else {
      reached = reached && k < p.limits[(d - 1u) / 4u][(d - 1u) % 4u];
    }
  }
  var acc = T(x[at.x]);
  let length = select(0u, p.length, live && reached);
  for (var t = 0u; t < length; t++) {
    if (u32(index[at.y + t * p.step.x]) == here) {
      acc = join(acc, T(src[at.z + t * p.step.y]));
    }
  }
  if (live) { y[i] = narrow(acc); }
}
