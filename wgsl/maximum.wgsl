fn op(a: T, b: T) -> R {
  return max_of(a, b);
}
