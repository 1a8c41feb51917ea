fn op(x: T) -> R {
  return log10_safe(x);
}
