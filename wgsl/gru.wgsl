// h' = n + z (h - n), n = tanh(g_n + r (R_n h + b_n)): formula and saved values in autograd/ops/rnn_cells.py.
// cost: 6 H^2 operations a row and step, 12 H^2 bytes a step for four rows; up to 256 invocations, up to 16 KiB shared
const GATES = 3u;
const PHASES = 1u;
const MOST = UNITS;

fn h_slot(s: u32) -> u32 {
  return (s & 1u) * UNITS;
}

fn advance(s: u32, first: u32, u: u32, phase: u32) {
  var ur = g_at(s, first, 0u, u) + bias(u);
  var uz = g_at(s, first, 1u, u) + bias(UNITS + u);
  var q = vec4<f32>(bias(2u * UNITS + u));
  for (var four = 0u; four < p.units; four += 4u) {
    for (var e = 0u; e < 4u; e++) {
      let k = four + e;
      if (UNITS % 4u != 0u && k >= p.units) { continue; }
      let at = k * GATES * UNITS + u;
      let hk = h_at(s, first, k);
      ur += weight(at) * hk;
      uz += weight(at + UNITS) * hk;
      q += weight(at + 2u * UNITS) * hk;
    }
  }
  let zero = vec4<f32>();
  let live = live_rows(s, first);
  let before = h_at(s, first, u);
  let r = sigmoid4(ur);
  let z = sigmoid4(uz);
  let n = tanh4(g_at(s, first, 2u, u) + r * q);
  let state = select(before, n + z * (before - n), live);
  hand_on(s, first, u, state);
  write_saved(s, first, 0u, u, select(zero, r, live));
  write_saved(s, first, 1u, u, select(vec4<f32>(1.0), z, live));  // 1 - z = 0 stops every gradient of a masked step
  write_saved(s, first, 2u, u, select(zero, q, live));
  write_saved(s, first, 3u, u, select(zero, n, live));
}
