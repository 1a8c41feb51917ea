// log|gamma|: Stirling's series above 7, the recurrence below it, the reflection left of 0.5.
// cost: about 90 operations, 8 bytes an element (0 in a fused kernel); 64 invocations, no shared memory
fn lgamma_right(x: f32) -> f32 {
  var z = x;
  var product = 1.0;
  for (var k = 0; k < 7; k++) {
    if (z < 7.0) {
      product *= z;
      z += 1.0;
    }
  }
  let r = 1.0 / z;
  let series = r * (0.083333333 - r * r * (0.0027777778 - r * r * 0.00079365079));
  return ((z - 0.5) * log_safe(z) - z + 0.91893853) + series - log_safe(product);
}

fn op(x: T) -> R {
  if (is_nan(x)) { return x; }
  if (is_inf(x)) { return infinity(); }
  if (x >= 0.5) { return lgamma_right(x); }
  let r = abs(x - round(x));
  if (r == 0.0) { return infinity(); }
  return 1.1447299 - log_safe(sin_safe(3.1415927 * r)) - lgamma_right(1.0 - x);
}
