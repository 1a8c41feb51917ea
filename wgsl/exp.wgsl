fn op(x: T) -> R {
  return exp_safe(x);
}
