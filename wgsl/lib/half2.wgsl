// float16 in pairs, for adapters that cannot compute in it: the first of a pair in the low half of a word.
// Not pack2x16float: drivers may cut off where this rounds to nearest, ties to even, and what overflows is undefined.
fn half2_bits(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let sign = (bits >> 16u) & 0x8000u;
  let size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) { return sign | 0x7e00u; }
  if (size >= 0x477ff000u) { return sign | 0x7c00u; }
  // Below 2^-14 the step is 2^-24 everywhere.
  if (size < 0x38800000u) { return sign | u32(round(bitcast<f32>(size) * 16777216.0)); }
  return sign | (((size + 0xfffu + ((size >> 13u) & 1u)) >> 13u) - 0x1c000u);
}

fn half2_one(word: u32, i: u32) -> f32 { return unpack2x16float(word >> (16u * (i & 1u))).x; }
fn half2_four(words: vec2<u32>) -> vec4<f32> { return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y)); }

fn half2_words(v: vec4<f32>) -> vec2<u32> {
  return vec2<u32>(half2_bits(v.x) | (half2_bits(v.y) << 16u), half2_bits(v.z) | (half2_bits(v.w) << 16u));
}

fn half2_round(x: f32) -> f32 { return half2_one(half2_bits(x), 0u); }
