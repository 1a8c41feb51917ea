fn op(x: T) -> R {
  return !truth(x);
}
