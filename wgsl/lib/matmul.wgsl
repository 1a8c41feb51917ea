// What the matmul kernels share: their parameters, and where a batch's matrices start.
struct Params {
  a_offset: u32,
  b_offset: u32,
  bias_offset: u32,
  first_batch: u32,           // where this dispatch begins: its first matrix and row of workgroups
  first_row: u32,
  turn: u32,                  // rows of y lie so many places further down, cyclically
  bias_col: u32,              // strides
  m: u32,
  n: u32,
  k: u32,
  rank: u32,                  // dimensions of the batch
  pad1: u32,
  a_row: u32,
  a_col: u32,
  b_row: u32,
  b_col: u32,
  dims: array<vec4<u32>, DIMS>,     // of the batch: size, stride of a, stride of b
  w: array<vec4<u32>, 12u - DIMS>,  // of what is made of the product before it is stored: webgpu/epilogue.py
}
@group(0) @binding(0) var<uniform> p: Params;

// The row of y that row m of the product is.
fn place(m: u32) -> u32 {
  let row = m + p.turn;
  return select(row, row - p.m, row >= p.m);
}

// First elements of this invocation's matrices in a and b.
fn batch_start(batch: u32) -> vec2<u32> {
  var rest = batch;
  var at = vec2<u32>(p.a_offset, p.b_offset);
  for (var d = p.rank; d > 0u; d--) {
    let dim = p.dims[d - 1u];
    let next = rest / dim.x;
    at += (rest - next * dim.x) * dim.yz;
    rest = next;
  }
  return at;
}
