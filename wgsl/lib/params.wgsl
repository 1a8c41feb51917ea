// The parameter slot of an elementwise kernel (256 bytes, one per dispatch).
struct Params {
  offset: vec4<u32>,          // first element of a, b, c and y
  scalar: vec4<u32>,          // operands that are Python numbers, as bits
  n: u32,                     // elements of y
  rank: u32,
  extra: vec2<u32>,           // what else a kernel asks for
  dims: array<vec4<u32>, 8>,  // size, then the strides of three operands
}
@group(0) @binding(0) var<uniform> p: Params;

// The flat index of an invocation; more than 65,535 workgroups lie in rows of w.x.
fn flat(g: vec3<u32>, w: vec3<u32>) -> u32 {
  return g.x + g.y * w.x * 64u;
}

// Where each operand keeps element i of the output. Strides may be negative: the sum wraps. A loop that parameters alone
// bound would be compiled anew for every dispatch on software Vulkan (wgsl/README.md).
fn locate(i: u32) -> vec3<u32> {
  var rest = i;
  var at = p.offset.xyz;
  for (var d = p.rank; (d > 1u) & (rest > 0u); d--) {
    let dim = p.dims[d - 1u];
    let next = rest / dim.x;
    at += (rest - next * dim.x) * dim.yzw;
    rest = next;
  }
  return at + rest * p.dims[0].yzw;
}
