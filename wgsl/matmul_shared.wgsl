// matmul.wgsl by way of workgroup memory, for GPUs: y[m, n] = sum over k of a[m, k] * b[k, n] (+ bias[n]).
// An invocation takes 16 (ROWS + COLS) numbers from workgroup memory for 64 ROWS * COLS products; two by two blocks
// leave room for two workgroups and more a core. Blocks are 4 x 4, as in matmul.wgsl; what lies past the end of k is zero.
// cost: 2 M N K operations; operands once a tile of 32 ROWS x 32 COLS; 64 invocations, 8 KiB shared, registers as matmul.wgsl
const DEPTH = 16u / (ROWS + COLS);  // blocks of k at a time
const TALL = 8u * ROWS;
const WIDE = 8u * COLS;
var<workgroup> a_tile: array<mat4x4<f32>, TALL * DEPTH>;
var<workgroup> b_tile: array<mat4x4<f32>, WIDE * DEPTH>;

fn load(start: vec2<u32>, row: u32, col: u32, k: u32, me: u32) {
  for (var t = me; t < TALL * DEPTH; t += 64u) {
    let at = k + 4u * (t % DEPTH);
    var block = mat4x4<f32>();
    if (at < p.k) { block = a_block(start.x, row + 4u * (t / DEPTH), at); }
    a_tile[t] = block;
  }
  for (var t = me; t < WIDE * DEPTH; t += 64u) {
    let at = k + 4u * (t / WIDE);
    var block = mat4x4<f32>();
    if (at < p.k) { block = b_block(start.y, at, col + 4u * (t % WIDE)); }
    b_tile[t] = block;
  }
}

@compute @workgroup_size(8, 8)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>,
        @builtin(local_invocation_index) me: u32) {
  let row = (group.y + p.first_row) * 4u * TALL;
  let col = group.x * 4u * WIDE;
  let batch = group.z + p.first_batch;
  let start = batch_start(batch);
  var acc: array<array<mat4x4<f32>, COLS>, ROWS>;
  var total: array<vec4<f32>, ROWS>;
  for (var r = 0u; r < ROWS; r++) {
    total[r] = vec4<f32>();
    for (var c = 0u; c < COLS; c++) { acc[r][c] = mat4x4<f32>(); }
  }
  for (var k = 0u; k < p.k; k += 4u * DEPTH) {
    load(start, row, col, k, me);
    workgroupBarrier();
    for (var d = 0u; d < DEPTH; d++) {
      var b4: array<mat4x4<f32>, COLS>;
      for (var c = 0u; c < COLS; c++) { b4[c] = b_tile[d * WIDE + c * 8u + l.x]; }
      for (var r = 0u; r < ROWS; r++) {
        let a4 = a_tile[(r * 8u + l.y) * DEPTH + d];
        for (var c = 0u; c < COLS; c++) { acc[r][c] += b4[c] * a4; }
        if (SUMS) { total[r] += vec4<f32>(1.0) * a4; }
      }
    }
    workgroupBarrier();
  }
  for (var r = 0u; r < ROWS; r++) {
    if (SUMS && group.x == 0u && l.x == 0u) { store_sums(batch, row + 4u * (r * 8u + l.y), total[r]); }
    for (var c = 0u; c < COLS; c++) {
      for (var i = 0u; i < 4u; i++) {
        store(batch, row + 4u * (r * 8u + l.y) + i, col + 4u * (c * 8u + l.x), acc[r][c][i]);
      }
    }
  }
}
