// As matmul_sums.wgsl, where two sums share a word: m and turn are multiples of four.
@group(0) @binding(4) var<storage, read_write> sums: array<vec2<u32>>;
const SUMS = true;

fn store_sums(batch: u32, m: u32, v: vec4<f32>) {
  if (m < p.m) { sums[(batch * p.m + place(m)) / 4u] = words(v); }
}

fn finish(n: u32, v: vec4<f32>) -> vec4<f32> {
  return v;
}
