fn op(a: T, b: T) -> R {
  return floor_div(a, b);
}
