fn op(x: T) -> R {
  return trunc_of(x);
}
