// a has any strides and sizes: one number a load, zero past the end of k.
@group(0) @binding(1) var<storage, read> a: array<E>;

fn a_at(first: u32, k: u32) -> f32 {
  return select(0.0, f32(a[first + min(k, p.k - 1u) * p.a_col]), k < p.k);
}

fn a_row(start: u32, m: u32, k: u32) -> vec4<f32> {
  let first = start + min(m, p.m - 1u) * p.a_row;
  return vec4<f32>(a_at(first, k), a_at(first, k + 1u), a_at(first, k + 2u), a_at(first, k + 3u));
}

fn a_block(start: u32, m: u32, k: u32) -> mat4x4<f32> {
  return mat4x4<f32>(a_row(start, m, k), a_row(start, m + 1u, k),
                     a_row(start, m + 2u, k), a_row(start, m + 3u, k));
}
