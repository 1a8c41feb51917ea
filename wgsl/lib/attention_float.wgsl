// A mask of numbers that are added.
fn masked(s: f32, at: u32) -> f32 {
  return s + mask[at];
}
