// a is contiguous along m (a transposed operand): one load reads four rows of one k.
@group(0) @binding(1) var<storage, read> a: array<vec4<E>>;

fn a_column(start: u32, m: u32, k: u32) -> vec4<f32> {
  return vec4<f32>(a[(start + k * p.a_col + m) / 4u]);
}

fn a_block(start: u32, m: u32, k: u32) -> mat4x4<f32> {
  return transpose(mat4x4<f32>(a_column(start, m, k), a_column(start, m, k + 1u),
                               a_column(start, m, k + 2u), a_column(start, m, k + 3u)));
}
