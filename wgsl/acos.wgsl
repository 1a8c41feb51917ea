fn op(x: T) -> R {
  return acos_safe(x);
}
