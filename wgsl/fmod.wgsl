fn op(a: T, b: T) -> R {
  return trunc_mod(a, b);
}
