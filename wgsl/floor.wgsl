fn op(x: T) -> R {
  return floor_of(x);
}
