// Two words of 16-bit elements: fresh where `inside`, the others bit for bit what they were.
fn kept_words(old: vec2<u32>, fresh: vec2<u32>, inside: vec4<bool>) -> vec2<u32> {
  let low = select(vec2<u32>(), vec2<u32>(0xffffu), inside.xz);
  let high = select(vec2<u32>(), vec2<u32>(0xffff0000u), inside.yw);
  return (old & ~(low | high)) | (fresh & (low | high));
}
