fn op(x: T) -> R {
  return exp2_safe(x);
}
