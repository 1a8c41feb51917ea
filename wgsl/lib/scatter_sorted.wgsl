// lib/scatter.wgsl by way of a sorted index: each element of y finds its run of pairs (key, place) by bisection and joins
// in order, so that the result repeats to the bit and costs no walk over the whole index.
struct Params {
  offset: vec4<u32>,             // of x and src
  n: u32,
  rank: u32,
  axis: u32,
  length: u32,                   // of index along the axis
  step: vec4<u32>,               // stride of src along the axis
  limits: array<vec4<u32>, 2>,   // index's sizes, which may be smaller than x's
  dims: array<vec4<u32>, 8>,     // size of x, strides of x, of the rows of pairs and of src; 0 on the axis
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<E>;
@group(0) @binding(2) var<storage, read> pairs: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> src: array<E>;
@group(0) @binding(4) var<storage, read_write> y: array<S>;

// The first pair of a row whose key is not below `key`.
fn lower_bound(row: u32, key: u32) -> u32 {
  var low = 0u;
  var high = p.length;
  while (low < high) {
    let middle = (low + high) / 2u;
    if (pairs[row + middle].x < key) {
      low = middle + 1u;
    } else {
      high = middle;
    }
  }
  return low;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = g.x + g.y * w.x * 64u;
  if (i >= p.n) { return; }
  var rest = i;
  var at = vec3<u32>(p.offset.x, 0u, p.offset.z);
  var here = 0u;
  var reached = true;
  for (var d = p.rank; d > 0u; d--) {
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
  if (reached) {
    for (var t = lower_bound(at.y, here); t < p.length; t++) {
      let pair = pairs[at.y + t];
      if (pair.x != here) { break; }
      acc = join(acc, T(src[at.z + pair.y * p.step.y]));
    }
  }
  y[i] = narrow(acc);
}
