// What the recurrent kernels share. A matrix holds the units of one quad (rows) for four batch rows (columns).

// Four at once and without a branch: software Vulkan compiles each of the many uses in a kernel anew.
// NaN comes through: it fails the comparisons, and its bits reach the result.
fn exp4(x: vec4<f32>) -> vec4<f32> {
  let z = clamp(x, vec4<f32>(-87.0), vec4<f32>(88.0));
  let k = round(z * 1.442695);
  let r = (z - k * 0.693359375) + k * 0.00021219444;
  let q = (((0.0013926927 * r + 0.008363774) * r + 0.04166655) * r + 0.16666573) * r + 0.5;
  let y = (1.0 + (r + r * r * q)) * bitcast<vec4<f32>>((vec4<i32>(k) + 127) << vec4<u32>(23u));
  let not_a_number = (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
  return select(y, x, not_a_number);
}

fn sigmoid4(x: vec4<f32>) -> vec4<f32> {
  return 1.0 / (1.0 + exp4(-x));
}

fn tanh4(x: vec4<f32>) -> vec4<f32> {
  return 1.0 - 2.0 / (1.0 + exp4(2.0 * x));
}

fn outer(a: vec4<f32>, rows: vec4<f32>) -> mat4x4<f32> {
  return mat4x4<f32>(a * rows.x, a * rows.y, a * rows.z, a * rows.w);
}

fn spread(a: vec4<f32>) -> mat4x4<f32> {
  return mat4x4<f32>(a, a, a, a);
}

// The place in memory of what is computed s-th.
fn place(s: u32) -> u32 {
  return select(s, p.steps - 1u - s, p.reverse != 0u);
}
