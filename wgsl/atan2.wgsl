fn op(a: T, b: T) -> R {
  return atan2_safe(a, b);
}
