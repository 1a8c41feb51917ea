fn op(x: T) -> R {
  return f32(x);
}
