fn op(a: T, b: T) -> R {
  return a / b;
}
