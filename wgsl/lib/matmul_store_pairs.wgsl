// n is a multiple of four, and two elements of y share a word: four columns a store.
@group(0) @binding(3) var<storage, read_write> y: array<vec2<u32>>;

fn store(batch: u32, m: u32, n: u32, v: vec4<f32>) {
  if (m < p.m && n < p.n) {
    y[((batch * p.m + place(m)) * p.n + n) / 4u] = words(finish(n, v));
  }
}
