// a is contiguous along k: one load reads four k of a row. Column i of the block is row m + i.
@group(0) @binding(1) var<storage, read> a: array<vec4<E>>;

fn a_row(start: u32, m: u32, k: u32) -> vec4<f32> {
  return vec4<f32>(a[(start + min(m, p.m - 1u) * p.a_row + k) / 4u]);
}

fn a_block(start: u32, m: u32, k: u32) -> mat4x4<f32> {
  return mat4x4<f32>(a_row(start, m, k), a_row(start, m + 1u, k),
                     a_row(start, m + 2u, k), a_row(start, m + 3u, k));
}
