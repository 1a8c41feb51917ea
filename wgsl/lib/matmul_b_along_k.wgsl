// b is contiguous along k (a transposed operand): one load reads four k of a column.
@group(0) @binding(2) var<storage, read> b: array<vec4<F>>;

fn b_column(start: u32, k: u32, n: u32) -> vec4<f32> {
  return vec4<f32>(b[(start + min(n, p.n - 1u) * p.b_col + k) / 4u]);
}

fn b_block(start: u32, k: u32, n: u32) -> mat4x4<f32> {
  return transpose(mat4x4<f32>(b_column(start, k, n), b_column(start, k, n + 1u),
                               b_column(start, k, n + 2u), b_column(start, k, n + 3u)));
}
