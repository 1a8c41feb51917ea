// h' = n + z (h - n), n = tanh(g_n + r (R_n h + b_n)): formula and saved values in autograd/ops/rnn_cells.py.
// 6 H^2 operations a row and step; the weights (12 H^2 bytes) are read once a step for four rows, from cache.
const GATES = 3u;
const PHASES = 1u;
const MOST = QUADS;

fn h_slot(s: u32) -> u32 {
  return (s & 1u) * UNITS;
}

fn advance(s: u32, first: u32, quad: u32, phase: u32) {
  let u = quad * 4u;
  var ur = mat4x4<f32>();
  var uz = mat4x4<f32>();
  var q = spread(b[p.b / 4u + quad]);
  for (var k = 0u; k < UNITS; k += 4u) {  // by four: software Vulkan counts the passes
    for (var j = 0u; j < 4u; j++) {
      let at = p.w / 4u + (k + j) * GATES * QUADS + quad;
      let hk = h_at(s, first, k + j);
      ur += outer(w[at], hk);
      uz += outer(w[at + QUADS], hk);
      q += outer(w[at + 2u * QUADS], hk);
    }
  }
  ur += g_at(s, first, 0u, u);
  uz += g_at(s, first, 1u, u);
  let gn = g_at(s, first, 2u, u);
  var state = h_quad(s, first, u);
  for (var i = 0u; i < rows_here(first); i++) {
    let row = first + i;
    let live = is_live(s, row);
    let r = sigmoid4(ur[i]);
    let z = sigmoid4(uz[i]);
    let n = tanh4(gn[i] + r * q[i]);
    state[i] = select(state[i], n + z * (state[i] - n), live);
    let zero = vec4<f32>();
    write_y(s, row, u, state[i]);
    write_saved(s, row, u, 0u, select(zero, r, live));
    write_saved(s, row, u, 1u, select(vec4<f32>(1.0), z, live));  // 1 - z = 0 stops every gradient of a masked step
    write_saved(s, row, u, 2u, select(zero, q[i], live));
    write_saved(s, row, u, 3u, select(zero, n, live));
  }
  share(UNITS - h_slot(s), u, state);
}
