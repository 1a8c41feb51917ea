@group(0) @binding(4) var<storage, read> bias: array<E>;

fn bias_at(n: u32) -> f32 {
  return f32(bias[p.bias_offset + min(n, p.n - 1u) * p.bias_col]);
}

// What is done to four columns from n on before they are stored.
fn finish(n: u32, v: vec4<f32>) -> vec4<f32> {
  return v + vec4<f32>(bias_at(n), bias_at(n + 1u), bias_at(n + 2u), bias_at(n + 3u));
}

const SUMS = false;
fn store_sums(batch: u32, m: u32, v: vec4<f32>) {}
