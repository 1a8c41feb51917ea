fn op(x: T) -> R {
  return to_byte(x);
}
