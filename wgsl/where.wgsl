fn op(c: u32, a: T, b: T) -> R {
  return select(b, a, c != 0u);
}
