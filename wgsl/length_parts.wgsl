// Partial 2-norms of several arrays together: each invocation walks its share of all of them.
// A part is (m, s) for m * sqrt(s): the squares are taken of x / m, m the largest so far, so none overflows or vanishes.
// cost: 3 operations and 4 bytes an element, 8 a part; 64 invocations, no shared memory, 256 elements each
struct Params {
  count: u32,                  // invocations in this dispatch
  first: u32,                  // where their parts go
  pad: vec2<u32>,
  spans: array<vec4<u32>, 7>,  // of each array: elements, first element
}
@group(0) @binding(0) var<uniform> p: Params;

fn enter(part: vec2<f32>, x: f32) -> vec2<f32> {
  let a = abs(x);
  if (is_nan(a) || is_nan(part.x)) { return vec2<f32>(not_a_number(), 1.0); }
  if (is_inf(a) || is_inf(part.x)) { return vec2<f32>(infinity(), 1.0); }
  if (a > part.x) {
    let q = part.x / a;
    return vec2<f32>(a, 1.0 + part.y * q * q);
  }
  if (a == 0.0) { return part; }
  let q = a / part.x;
  return vec2<f32>(part.x, part.y + q * q);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>) {
  if (g.x < p.count) { y[p.first + g.x] = walk(g.x); }
}
