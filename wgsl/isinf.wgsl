fn op(x: T) -> R {
  return is_inf(x);
}
