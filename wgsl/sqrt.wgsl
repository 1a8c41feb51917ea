fn op(x: T) -> R {
  return sqrt(x);
}
