fn op(x: T) -> R {
  return log1p_safe(x);
}
