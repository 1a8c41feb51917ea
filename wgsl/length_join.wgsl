// Joins neighbouring parts of length_parts.wgsl, up to 256 an invocation, so that few are left to length.wgsl.
// cost: 5 operations and 8 bytes a part, 8 for 256 of them; 64 invocations, no shared memory
struct Params {
  count: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> parts: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec2<f32>>;

fn join(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
  if (is_nan(a.x) || is_nan(b.x)) { return vec2<f32>(not_a_number(), 1.0); }
  if (is_inf(a.x) || is_inf(b.x)) { return vec2<f32>(infinity(), 1.0); }
  let large = select(a, b, b.x > a.x);
  let small = select(b, a, b.x > a.x);
  if (small.x == 0.0) { return large; }
  let q = small.x / large.x;
  return vec2<f32>(large.x, large.y + small.y * q * q);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>) {
  let start = g.x * 256u;
  var part = vec2<f32>();
  for (var i = start; i < min(start + 256u, p.count); i++) { part = join(part, parts[i]); }
  if (start < p.count) { y[g.x] = part; }
}
