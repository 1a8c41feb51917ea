// Windows that slide over three dimensions; fewer are filled up with sizes of 1 in front.
struct Params {
  n: u32,                     // elements of y
  offset: u32,                // first element of x
  pad0: u32,
  pad1: u32,
  sizes: vec4<u32>,           // of the dimensions that the windows slide over
  count: vec4<u32>,           // windows along each
  kernel: vec4<u32>,          // elements of a window along each
  stride: vec4<u32>,
  dilation: vec4<u32>,
  padding: vec4<u32>,         // elements in front that are in x already and are never chosen
  start: vec4<u32>,           // x's strides from window to window
  inner: vec4<u32>,           // x's strides within a window
  lead: array<vec4<u32>, 4>,  // size and stride of the other dimensions
}
@group(0) @binding(0) var<uniform> p: Params;

// The flat index of an invocation; more than 65,535 workgroups lie in rows of w.x.
fn flat(g: vec3<u32>, w: vec3<u32>) -> u32 {
  return g.x + g.y * w.x * 64u;
}

// The position i in sizes as (x, y, z), and in w what is left for the leading dimensions.
fn unravel(i: u32, sizes: vec3<u32>) -> vec4<u32> {
  let above = i / sizes.z;
  let top = above / sizes.y;
  return vec4(top % sizes.x, above - top * sizes.y, i - above * sizes.z, top / sizes.x);
}

// Where x keeps the first element for number i of the leading dimensions.
fn lead_start(i: u32) -> u32 {
  var rest = i;
  var at = p.offset;
  for (var d = 4u; d > 0u; d--) {
    let next = rest / p.lead[d - 1u].x;
    at += (rest - next * p.lead[d - 1u].x) * p.lead[d - 1u].y;
    rest = next;
  }
  return at;
}
