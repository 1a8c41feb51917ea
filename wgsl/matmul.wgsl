// y[m, n] = sum over k of a[m, k] * b[k, n] (+ bias[n]), for every matrix of a batch; store() may make more of it (epilogue.py).
// A register tile without barriers: ROWS x COLS blocks of 4 x 4. Where occupancy counts, the
// launcher picks smaller tiles. Sums are f32 whatever the operands are.
// cost: 2 M N K operations; 16 (ROWS + COLS) bytes for 64 ROWS COLS products; 64 invocations, 16 (ROWS COLS + COLS + 1) registers
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) g: vec3<u32>) {
  let row = (g.y + p.first_row * 8u) * 4u * ROWS;
  let col = g.x * 4u * COLS;
  if (row >= p.m || col >= p.n) { return; }
  let batch = g.z + p.first_batch;
  let start = batch_start(batch);
  var acc: array<array<mat4x4<f32>, COLS>, ROWS>;
  var total: array<vec4<f32>, ROWS>;
  for (var r = 0u; r < ROWS; r++) {
    total[r] = vec4<f32>();
    for (var c = 0u; c < COLS; c++) { acc[r][c] = mat4x4<f32>(); }
  }
  for (var k = 0u; k < p.k; k += 4u) {
    var b4: array<mat4x4<f32>, COLS>;
    for (var c = 0u; c < COLS; c++) { b4[c] = b_block(start.y, k, col + 4u * c); }
    for (var r = 0u; r < ROWS; r++) {
      let a4 = a_block(start.x, row + 4u * r, k);
      for (var c = 0u; c < COLS; c++) { acc[r][c] += b4[c] * a4; }
      if (SUMS) { total[r] += vec4<f32>(1.0) * a4; }
    }
  }
  for (var r = 0u; r < ROWS; r++) {
    if (SUMS && g.x == 0u) { store_sums(batch, row + 4u * r, total[r]); }
    for (var c = 0u; c < COLS; c++) {
      for (var i = 0u; i < 4u; i++) {
        store(batch, row + 4u * r + i, col + 4u * c, acc[r][c][i]);
      }
    }
  }
}
