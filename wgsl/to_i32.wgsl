fn op(x: T) -> R {
  return i32(x);
}
