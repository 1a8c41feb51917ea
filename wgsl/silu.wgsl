fn op(x: T) -> R {
  return x * sigmoid_safe(x);
}
