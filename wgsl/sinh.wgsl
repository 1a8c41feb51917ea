fn op(x: T) -> R {
  return sinh_safe(x);
}
