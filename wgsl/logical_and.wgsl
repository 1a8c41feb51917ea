fn op(a: T, b: T) -> R {
  return truth(a) && truth(b);
}
