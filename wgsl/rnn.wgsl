// h' = tanh(g + R h), or max(0, g + R h): formula in autograd/ops/rnn_cells.py.
// cost: 2 H^2 operations a row and step, 4 H^2 bytes a step for four rows; up to 256 invocations, up to 16 KiB shared
const GATES = 1u;
const PHASES = 1u;
const MOST = UNITS;

fn h_slot(s: u32) -> u32 {
  return (s & 1u) * UNITS;
}

fn advance(s: u32, first: u32, u: u32, phase: u32) {
  var sum = g_at(s, first, 0u, u) + bias(u);
  for (var four = 0u; four < p.units; four += 4u) {
    for (var e = 0u; e < 4u; e++) {
      let k = four + e;
      if (UNITS % 4u != 0u && k >= p.units) { continue; }
      sum += weight(k * UNITS + u) * h_at(s, first, k);
    }
  }
  // `sum < 0` is false for NaN, which relu hands on.
  let value = select(tanh4(sum), select(sum, vec4<f32>(), sum < vec4<f32>()), p.relu != 0u);
  let state = select(h_at(s, first, u), value, live_rows(s, first));
  hand_on(s, first, u, state);
}
