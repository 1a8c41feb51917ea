// Bits of floating point order as integers once negative numbers are turned round; -0 is 0.
fn key_of(x: f32) -> u32 {
  if (is_nan(x)) { return 0xfffffffeu; }
  if (x == 0.0) { return 0x80000000u; }
  let bits = bitcast<u32>(x);
  return select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u);
}
