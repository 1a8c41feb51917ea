fn op(x: T) -> R {
  return sin_safe(x);
}
