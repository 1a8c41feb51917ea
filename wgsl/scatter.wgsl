// y = x where last is 0, else element last - 1 of src, counted in the index's shape. See scatter_last.wgsl.
// cost: no arithmetic, 12 bytes an element of x; 64 invocations, no shared memory
struct Params {
  offset: vec2<u32>,          // of x and src
  n: u32,
  rank: u32,
  dims: array<vec4<u32>, 8>,  // sizes of x and of the index, strides of x and src
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<E>;
@group(0) @binding(2) var<storage, read> src: array<E>;
@group(0) @binding(3) var<storage, read> last: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<E>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = g.x + g.y * w.x * 64u;
  if (i >= p.n) { return; }
  let written = last[i];
  var rest = vec2<u32>(i, max(written, 1u) - 1u);
  var at = p.offset;
  for (var d = p.rank; d > 0u; d--) {
    let dim = p.dims[d - 1u];
    let next = rest / max(dim.xy, vec2<u32>(1u));
    at += (rest - next * dim.xy) * dim.zw;
    rest = next;
  }
  if (written == 0u) {
    y[i] = x[at.x];
  } else {
    y[i] = src[at.y];
  }
}
