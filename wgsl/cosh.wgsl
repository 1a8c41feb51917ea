fn op(x: T) -> R {
  return cosh_safe(x);
}
