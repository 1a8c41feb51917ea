// last[place of t] = the largest t + 1 of all elements of an index that name it; 0 stays where none does.
// cost: one atomic, 8 bytes an element of the index; 64 invocations, no shared memory
struct Params {
  offset: u32,
  n: u32,                     // elements of the index
  rank: u32,
  axis: u32,
  step: u32,                  // stride of `last` along the axis
  pad0: u32,
  pad1: u32,
  pad2: u32,
  dims: array<vec4<u32>, 8>,  // size of the index, its strides, strides of `last`; 0 for these on the axis
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read_write> last: array<atomic<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let t = g.x + g.y * w.x * 64u;
  if (t >= p.n) { return; }
  var rest = t;
  var at = vec2<u32>(p.offset, 0u);
  for (var d = p.rank; d > 0u; d--) {
    let dim = p.dims[d - 1u];
    let next = rest / dim.x;
    at += (rest - next * dim.x) * dim.yz;
    rest = next;
  }
  atomicMax(&last[at.y + u32(index[at.x]) * p.step], t + 1u);
}
