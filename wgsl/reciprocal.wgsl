fn op(x: T) -> R {
  return 1.0 / x;
}
