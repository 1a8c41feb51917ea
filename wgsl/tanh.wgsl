fn op(x: T) -> R {
  return tanh_safe(x);
}
