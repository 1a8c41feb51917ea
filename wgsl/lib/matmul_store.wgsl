// Any n: one column a store.
@group(0) @binding(3) var<storage, read_write> y: array<O>;

fn store(batch: u32, m: u32, n: u32, v: vec4<f32>) {
  if (m < p.m) {
    let z = finish(n, v);
    let first = (batch * p.m + place(m)) * p.n + n;
    if (n < p.n) { y[first] = O(z.x); }
    if (n + 1u < p.n) { y[first + 1u] = O(z.y); }
    if (n + 2u < p.n) { y[first + 2u] = O(z.z); }
    if (n + 3u < p.n) { y[first + 3u] = O(z.w); }
  }
}
