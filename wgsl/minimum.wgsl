fn op(a: T, b: T) -> R {
  return min_of(a, b);
}
