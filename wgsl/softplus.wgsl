fn op(x: T) -> R {
  return max_of(x, 0.0) + log1p_safe(exp_safe(-abs(x)));
}
