fn op(x: T) -> R {
  return x;
}
