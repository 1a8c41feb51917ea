fn op(x: T) -> R {
  return 0.5 * x * erfc_safe(-0.70710678 * x);
}
