// Beside the product the sums of a's rows: what a bias gets where a is the gradient of a linear layer, turned.
@group(0) @binding(4) var<storage, read_write> sums: array<O>;
const SUMS = true;

fn store_sums(batch: u32, m: u32, v: vec4<f32>) {
  for (var i = 0u; i < 4u; i++) {
    if (m + i < p.m) { sums[batch * p.m + place(m + i)] = O(v[i]); }
  }
}

// What is done to four columns from n on before they are stored: nothing.
fn finish(n: u32, v: vec4<f32>) -> vec4<f32> {
  return v;
}
