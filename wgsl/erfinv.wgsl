// An approximation to 2e-3, then two steps of Halley's method on erf, or on erfc near the ends.
// cost: about 120 operations, 8 bytes an element (0 in a fused kernel); 64 invocations, no shared memory
fn op(x: T) -> R {
  if (is_nan(x) || abs(x) > 1.0) { return not_a_number(); }
  let a = abs(x);
  if (a == 1.0) { return copy_sign(infinity(), x); }
  let l = log1p_safe(-a) + log1p_safe(a);
  let u = 4.3307467 + 0.5 * l;
  var y = sqrt(max(-l / 0.147 / (sqrt(u * u - l / 0.147) + u), 0.0));
  for (var k = 0; k < 2; k++) {
    var f = 0.0;
    if (y < 0.5) {
      f = (erf_core(y) - a) * exp_safe(y * y);
    } else {
      f = (1.0 - a) * exp_safe(y * y) - erfcx_core(y);
    }
    let d = f * 0.8862269;
    y -= d / (1.0 + y * d);
  }
  return copy_sign(y, x);
}
