fn op(x: T) -> R {
  return negate(x);
}
