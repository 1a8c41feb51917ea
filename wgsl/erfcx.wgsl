// cost: about 25 operations, 8 bytes an element (0 in a fused kernel); 64 invocations, no shared memory
fn op(x: T) -> R {
  if (is_nan(x)) { return x; }
  if (x >= 0.5) { return erfcx_core(x); }
  // x * x loses 24 bits; the square of its upper half is exact, and the rest is small.
  let hi = bitcast<f32>(bitcast<u32>(x) & 0xfffff000u);
  let e = exp_safe(hi * hi) * exp_safe((x - hi) * (x + hi));
  if (x > -0.5) { return (1.0 - erf_core(x)) * e; }
  return 2.0 * e - erfcx_core(-x);
}
