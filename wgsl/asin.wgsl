fn op(x: T) -> R {
  return asin_safe(x);
}
