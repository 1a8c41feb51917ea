fn op(x: T) -> R {
  return cos_safe(x);
}
