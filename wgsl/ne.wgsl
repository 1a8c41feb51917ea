fn op(a: T, b: T) -> R {
  return differs(a, b);
}
