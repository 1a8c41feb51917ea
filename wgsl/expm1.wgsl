fn op(x: T) -> R {
  return expm1_safe(x);
}
