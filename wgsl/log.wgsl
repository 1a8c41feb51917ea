fn op(x: T) -> R {
  return log_safe(x);
}
