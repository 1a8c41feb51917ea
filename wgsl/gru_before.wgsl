// h' = n + z (h - n), n = tanh(g_n + R_n (r h)): formula and saved values in autograd/ops/rnn_cells.py.
// Phase 0 makes r and z and shares r h; phase 1 makes n and the state.
// cost: 6 H^2 operations a row and step, 12 H^2 bytes a step for four rows; up to 256 invocations, up to 16 KiB shared
const GATES = 3u;
const PHASES = 2u;
const MOST = UNITS;

fn h_slot(s: u32) -> u32 {
  return 0u;
}

fn reset_at(s: u32, first: u32, k: u32) -> vec4<f32> {
  if (PERSISTENT) { return x[UNITS + k]; }
  return read_saved(s, first, 0u, k) * h_stored(s, first, k);
}

fn open_gates(s: u32, first: u32, u: u32) {
  var ur = g_at(s, first, 0u, u) + bias(u);
  var uz = g_at(s, first, 1u, u) + bias(UNITS + u);
  for (var four = 0u; four < p.units; four += 4u) {
    for (var e = 0u; e < 4u; e++) {
      let k = four + e;
      if (UNITS % 4u != 0u && k >= p.units) { continue; }
      let at = k * GATES * UNITS + u;
      let hk = h_at(s, first, k);
      ur += weight(at) * hk;
      uz += weight(at + UNITS) * hk;
    }
  }
  let live = live_rows(s, first);
  let r = select(vec4<f32>(), sigmoid4(ur), live);
  share(UNITS + u, r * h_at(s, first, u));
  write_saved(s, first, 0u, u, r);
  write_saved(s, first, 1u, u, select(vec4<f32>(1.0), sigmoid4(uz), live));
}

fn new_state(s: u32, first: u32, u: u32) {
  var un = g_at(s, first, 2u, u) + bias(2u * UNITS + u);
  for (var four = 0u; four < p.units; four += 4u) {
    for (var e = 0u; e < 4u; e++) {
      let k = four + e;
      if (UNITS % 4u != 0u && k >= p.units) { continue; }
      un += weight((k * GATES + 2u) * UNITS + u) * reset_at(s, first, k);
    }
  }
  let live = live_rows(s, first);
  let before = h_at(s, first, u);
  let n = select(vec4<f32>(), tanh4(un), live);
  let state = select(before, n + read_saved(s, first, 1u, u) * (before - n), live);
  hand_on(s, first, u, state);
  write_saved(s, first, 2u, u, n);
}

fn advance(s: u32, first: u32, u: u32, phase: u32) {
  if (phase == 0u) {
    open_gates(s, first, u);
  } else {
    new_state(s, first, u);
  }
}
