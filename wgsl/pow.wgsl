fn op(a: T, b: T) -> R {
  return power(a, b);
}
