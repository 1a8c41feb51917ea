// The 2-norm that length_parts.wgsl left in parts, and the factor that brings it down to a limit: one invocation.
// cost: 4 operations and 8 bytes a part, of which there are few; one invocation
struct Params {
  count: u32,
  limit: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> parts: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;  // norm, factor

@compute @workgroup_size(1)
fn main() {
  var m = 0.0;
  for (var i = 0u; i < p.count; i++) { m = max_of(m, parts[i].x); }
  var s = 0.0;
  if (m > 0.0 && !is_inf(m)) {
    for (var i = 0u; i < p.count; i++) {
      let q = parts[i].x / m;
      s += parts[i].y * q * q;
    }
  }
  let norm = select(m * sqrt(s), m, m == 0.0 || is_inf(m) || is_nan(m));
  y[0] = norm;
  y[1] = min_of(p.limit / (norm + 1e-6), 1.0);
}
