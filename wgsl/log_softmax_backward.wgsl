// dx = dy - exp(y) * sum(dy)
// cost: about 17 operations an element, 8 bytes read twice, 4 written; 1 to 256 invocations a row, 4 bytes shared each
fn weigh(y: f32, dy: f32) -> f32 {
  return dy;
}
fn op(y: f32, dy: f32, sum: f32) -> f32 {
  return dy - exp_safe(y) * sum;
}
