fn op(x: T) -> R {
  return tan_safe(x);
}
