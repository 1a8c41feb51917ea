fn op(a: T, b: T) -> R {
  return floor_mod(a, b);
}
