// y = x, and along one axis y[.., index[t], ..] += src[.., t, ..], by a sorted index.
// Each element of y finds its run of pairs by bisection and adds in order: it repeats to the bit.
struct Params {
  offset: vec2<u32>,          // of x and src
  n: u32,
  rank: u32,
  axis: u32,
  length: u32,                // of the index
  step: u32,                  // stride of src along the axis
  pad: u32,
  dims: array<vec4<u32>, 8>,  // size of x, strides of x and src; 0 for src on the axis
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<E>;
@group(0) @binding(2) var<storage, read> pairs: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> src: array<E>;
@group(0) @binding(4) var<storage, read_write> y: array<S>;

// The first pair whose key is not below `key`.
fn lower_bound(key: u32) -> u32 {
  var low = 0u;
  var high = p.length;
  while (low < high) {
    let middle = (low + high) / 2u;
    if (pairs[middle].x < key) {
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
  var at = p.offset;
  var here = 0u;
  for (var d = p.rank; d > 0u; d--) {
    let dim = p.dims[d - 1u];
    let next = rest / dim.x;
    let k = rest - next * dim.x;
    at += k * dim.yz;
    rest = next;
    if (d - 1u == p.axis) { here = k; }
  }
  var acc = T(x[at.x]);
  for (var t = lower_bound(here); t < p.length; t++) {
    let pair = pairs[t];
    if (pair.x != here) { break; }
    acc += T(src[at.y + pair.y * p.step]);
  }
  y[i] = narrow(acc);
}
