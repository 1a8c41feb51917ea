fn op(x: T) -> R {
  return sigmoid_safe(x);
}
