fn op(x: T) -> R {
  return max_of(x, T(0));
}
