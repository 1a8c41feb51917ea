// dx = y * (dy - sum(dy * y))
fn weigh(y: f32, dy: f32) -> f32 {
  return dy * y;
}
fn op(y: f32, dy: f32, sum: f32) -> f32 {
  return y * (dy - sum);
}
