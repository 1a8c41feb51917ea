fn op(x: T) -> R {
  return x * sigmoid_safe(x * (1.5957691 + 0.071354816 * x * x));
}
