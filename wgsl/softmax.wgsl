// x is already less its row's maximum, sum is that of the row's exponentials.
fn op(x: f32, sum: f32) -> f32 {
  return exp_safe(x) / sum;
}
