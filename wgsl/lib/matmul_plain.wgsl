// What is done to four columns from n on before they are stored: nothing.
fn finish(n: u32, v: vec4<f32>) -> vec4<f32> {
  return v;
}

const SUMS = false;
fn store_sums(batch: u32, m: u32, v: vec4<f32>) {}
