// No mask.
fn masked(s: f32, at: u32) -> f32 {
  return s;
}
