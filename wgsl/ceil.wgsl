fn op(x: T) -> R {
  return ceil_of(x);
}
