fn op(x: T) -> R {
  return atan_safe(x);
}
