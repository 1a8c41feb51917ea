// h' = n + z (h - n), n = tanh(g_n + R_n (r h)): formula and saved values in autograd/ops/rnn_cells.py.
// Phase 0 makes r and z and shares r h; phase 1 makes n and the state. 6 H^2 operations a row and step.
const GATES = 3u;
const PHASES = 2u;
const MOST = QUADS;

fn h_slot(s: u32) -> u32 {
  return 0u;
}

// r h of unit k in four rows.
fn reset_at(s: u32, first: u32, k: u32) -> vec4<f32> {
  if (PERSISTENT) { return x[UNITS + k]; }
  var m = vec4<f32>();
  for (var i = 0u; i < 4u; i++) {
    let row = row_of(first, i);
    m[i] = saved[saved_at(s, row, min(k, p.units - 1u))] * h_stored(s, row, k);
  }
  return m;
}

fn open_gates(s: u32, first: u32, quad: u32) {
  let u = quad * 4u;
  var ur = g_at(s, first, 0u, u);
  var uz = g_at(s, first, 1u, u);
  for (var k = 0u; k < UNITS; k += 4u) {
    for (var j = 0u; j < 4u; j++) {
      let at = p.w / 4u + (k + j) * GATES * QUADS + quad;
      let hk = h_at(s, first, k + j);
      ur += outer(w[at], hk);
      uz += outer(w[at + QUADS], hk);
    }
  }
  var reset = h_quad(s, first, u);
  for (var i = 0u; i < rows_here(first); i++) {
    let row = first + i;
    let live = is_live(s, row);
    let r = select(vec4<f32>(), sigmoid4(ur[i]), live);
    reset[i] *= r;
    write_saved(s, row, u, 0u, r);
    write_saved(s, row, u, 1u, select(vec4<f32>(1.0), sigmoid4(uz[i]), live));
  }
  share(UNITS, u, reset);
}

fn new_state(s: u32, first: u32, quad: u32) {
  let u = quad * 4u;
  var un = g_at(s, first, 2u, u);
  for (var k = 0u; k < UNITS; k += 4u) {
    for (var j = 0u; j < 4u; j++) {
      un += outer(w[p.w / 4u + ((k + j) * GATES + 2u) * QUADS + quad], reset_at(s, first, k + j));
    }
  }
  var state = h_quad(s, first, u);
  for (var i = 0u; i < rows_here(first); i++) {
    let row = first + i;
    let live = is_live(s, row);
    let n = select(vec4<f32>(), tanh4(un[i]), live);
    let z = read_saved(s, row, u, 1u);
    state[i] = select(state[i], n + z * (state[i] - n), live);
    write_y(s, row, u, state[i]);
    write_saved(s, row, u, 2u, n);
  }
  share(0u, u, state);
}

fn advance(s: u32, first: u32, quad: u32, phase: u32) {
  if (phase == 0u) {
    open_gates(s, first, quad);
  } else {
    new_state(s, first, quad);
  }
}
