fn op(x: T) -> R {
  return log2_safe(x);
}
