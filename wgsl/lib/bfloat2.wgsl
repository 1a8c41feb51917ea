// bfloat16 in pairs: the upper halves of two float32, the first of a pair in the low half of a word.
// Rounded to nearest, ties to even; a NaN stays one.
fn bfloat2_bits(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return (bits >> 16u) | 0x40u; }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}

fn bfloat2_one(word: u32, i: u32) -> f32 { return bitcast<f32>((word >> (16u * (i & 1u))) << 16u); }

fn bfloat2_four(words: vec2<u32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(vec4<u32>(words.x << 16u, words.x & 0xffff0000u, words.y << 16u, words.y & 0xffff0000u));
}

fn bfloat2_words(v: vec4<f32>) -> vec2<u32> {
  return vec2<u32>(bfloat2_bits(v.x) | (bfloat2_bits(v.y) << 16u), bfloat2_bits(v.z) | (bfloat2_bits(v.w) << 16u));
}

fn bfloat2_round(x: f32) -> f32 { return bfloat2_one(bfloat2_bits(x), 0u); }
