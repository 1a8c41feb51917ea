fn op(x: T) -> R {
  return erf_safe(x);
}
