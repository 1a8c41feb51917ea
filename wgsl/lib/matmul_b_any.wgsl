// b has any strides and sizes: one number a load, zero past the end of k.
@group(0) @binding(2) var<storage, read> b: array<F>;

fn b_at(first: u32, n: u32) -> f32 {
  return f32(b[first + min(n, p.n - 1u) * p.b_col]);
}

fn b_row(start: u32, k: u32, n: u32) -> vec4<f32> {
  let first = start + min(k, p.k - 1u) * p.b_row;
  let v = vec4<f32>(b_at(first, n), b_at(first, n + 1u),
                    b_at(first, n + 2u), b_at(first, n + 3u));
  return select(vec4<f32>(), v, k < p.k);
}

fn b_block(start: u32, k: u32, n: u32) -> mat4x4<f32> {
  return mat4x4<f32>(b_row(start, k, n), b_row(start, k + 1u, n),
                     b_row(start, k + 2u, n), b_row(start, k + 3u, n));
}
