fn op(x: T) -> R {
  return !(is_nan(x) || is_inf(x));
}
