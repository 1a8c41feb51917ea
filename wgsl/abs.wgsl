fn op(x: T) -> R {
  return magnitude(x);
}
