// b is contiguous along n: one load reads four columns of one k. Column j of the block is k + j.
@group(0) @binding(2) var<storage, read> b: array<vec4<F>>;

fn b_row(start: u32, k: u32, n: u32) -> vec4<f32> {
  return vec4<f32>(b[(start + k * p.b_row + n) / 4u]);
}

fn b_block(start: u32, k: u32, n: u32) -> mat4x4<f32> {
  return mat4x4<f32>(b_row(start, k, n), b_row(start, k + 1u, n),
                     b_row(start, k + 2u, n), b_row(start, k + 3u, n));
}
