// Activations of the recurrent kernels, four rows at once and without a branch.

// NaN comes through: it fails no comparison, its bits are looked at.
fn exp4(x: vec4<f32>) -> vec4<f32> {
  let z = clamp(x, vec4<f32>(-87.0), vec4<f32>(88.0));
  let k = round(z * 1.442695);
  let r = (z - k * 0.693359375) + k * 0.00021219444;
  let q = (((0.0013926927 * r + 0.008363774) * r + 0.04166655) * r + 0.16666573) * r + 0.5;
  let y = (1.0 + (r + r * r * q)) * bitcast<vec4<f32>>((vec4<i32>(k) + 127) << vec4<u32>(23u));
  return select(y, x, (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u));
}

fn sigmoid4(x: vec4<f32>) -> vec4<f32> {
  return 1.0 / (1.0 + exp4(-x));
}

fn tanh4(x: vec4<f32>) -> vec4<f32> {
  return 1.0 - 2.0 / (1.0 + exp4(2.0 * x));
}
