fn op(x: T) -> R {
  return sign_of(x);
}
