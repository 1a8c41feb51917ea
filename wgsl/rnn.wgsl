// h' = tanh(g + R h), or max(0, g + R h): formula in autograd/ops/rnn_cells.py. 2 H^2 operations a row and step.
const GATES = 1u;
const PHASES = 1u;
const MOST = QUADS;

fn h_slot(s: u32) -> u32 {
  return (s & 1u) * UNITS;
}

fn advance(s: u32, first: u32, quad: u32, phase: u32) {
  let u = quad * 4u;
  var sum = g_at(s, first, 0u, u);
  for (var k = 0u; k < UNITS; k += 4u) {
    for (var j = 0u; j < 4u; j++) {
      sum += outer(w[p.w / 4u + (k + j) * QUADS + quad], h_at(s, first, k + j));
    }
  }
  var state = h_quad(s, first, u);
  for (var i = 0u; i < 4u; i++) {
    let row = row_of(first, i);
    // `sum < 0` is false for NaN, which relu hands on.
    let value = select(tanh4(sum[i]), select(sum[i], vec4<f32>(), sum[i] < vec4<f32>()), p.relu != 0u);
    state[i] = select(state[i], value, is_live(s, row));
    write_y(s, row, u, state[i]);
  }
  share(UNITS - h_slot(s), u, state);
}
