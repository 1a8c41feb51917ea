fn op(x: T) -> R {
  return round_of(x);
}
