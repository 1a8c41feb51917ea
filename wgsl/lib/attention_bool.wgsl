// A mask of bool: true where the key may be seen.
fn masked(s: f32, at: u32) -> f32 {
  return select(HIDDEN, s, mask[at] != 0u);
}
