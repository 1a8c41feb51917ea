fn op(x: T) -> R {
  return invert(x);
}
