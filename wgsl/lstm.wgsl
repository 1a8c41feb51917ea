// c' = f c + i g, h' = o tanh(c') [times W_hr^T]: formula and saved values in autograd/ops/rnn_cells.py.
// 8 H^2 operations a row and step. With a projection phase 0 shares o tanh(c'), and phase 1 multiplies it.
const GATES = 4u;
const PHASES = select(1u, 2u, PROJECTED);
const MOST = max(QUADS, WIDTH / 4u);

fn h_slot(s: u32) -> u32 {
  return select((s & 1u) * UNITS, 0u, PROJECTED);
}

// o tanh(c') of unit k in four rows.
fn m_at(s: u32, first: u32, k: u32) -> vec4<f32> {
  if (PERSISTENT) { return x[WIDTH + k]; }
  var m = vec4<f32>();
  for (var i = 0u; i < 4u; i++) {
    let at = saved_at(s, row_of(first, i), min(k, p.units - 1u));
    m[i] = saved[at + 3u * part()] * saved[at + 5u * part()];
  }
  return m;
}

fn c_before(s: u32, row: u32, u: u32) -> vec4<f32> {
  if (s > 0u) { return read_saved(s - 1u, row, u, 4u); }
  let at = p.c0 + row * p.units + u;
  let last = p.units - 1u - u;
  return vec4<f32>(c0[at], c0[at + min(1u, last)], c0[at + min(2u, last)], c0[at + min(3u, last)]);
}

fn cell(s: u32, first: u32, quad: u32) {
  let u = quad * 4u;
  var ui = g_at(s, first, 0u, u);
  var uf = g_at(s, first, 1u, u);
  var ug = g_at(s, first, 2u, u);
  var uo = g_at(s, first, 3u, u);
  for (var k = 0u; k < WIDTH; k += 4u) {
    for (var j = 0u; j < 4u; j++) {
      let at = p.w / 4u + (k + j) * GATES * QUADS + quad;
      let hk = h_at(s, first, k + j);
      ui += outer(w[at], hk);
      uf += outer(w[at + QUADS], hk);
      ug += outer(w[at + 2u * QUADS], hk);
      uo += outer(w[at + 3u * QUADS], hk);
    }
  }
  var state = mat4x4<f32>();
  if (!PROJECTED) { state = h_quad(s, first, u); }
  for (var i = 0u; i < rows_here(first); i++) {
    let row = first + i;
    let live = is_live(s, row);
    let zero = vec4<f32>();
    let before = c_before(s, row, u);
    let gi = select(zero, sigmoid4(ui[i]), live);
    let gf = select(vec4<f32>(1.0), sigmoid4(uf[i]), live);
    let gg = select(zero, tanh4(ug[i]), live);
    let go = select(zero, sigmoid4(uo[i]), live);
    let c = gf * before + gi * gg;
    let squashed = select(zero, tanh4(c), live);
    state[i] = select(state[i], go * squashed, live);
    if (!PROJECTED) { write_y(s, row, u, state[i]); }
    write_saved(s, row, u, 0u, gi);
    write_saved(s, row, u, 1u, gf);
    write_saved(s, row, u, 2u, gg);
    write_saved(s, row, u, 3u, go);
    write_saved(s, row, u, 4u, c);
    write_saved(s, row, u, 5u, squashed);
  }
  share(select(UNITS - h_slot(s), WIDTH, PROJECTED), u, state);
}

fn projection(s: u32, first: u32, quad: u32) {
  let u = quad * 4u;
  var sum = mat4x4<f32>();
  let start = p.w / 4u + WIDTH * GATES * QUADS + quad;
  for (var k = 0u; k < UNITS; k += 4u) {
    for (var j = 0u; j < 4u; j++) {
      sum += outer(w[start + (k + j) * (WIDTH / 4u)], m_at(s, first, k + j));
    }
  }
  var state = h_quad(s, first, u);
  for (var i = 0u; i < 4u; i++) {
    let row = row_of(first, i);
    state[i] = select(state[i], sum[i], is_live(s, row));
    write_y(s, row, u, state[i]);
  }
  share(0u, u, state);
}

fn advance(s: u32, first: u32, quad: u32, phase: u32) {
  if (phase == 0u) {
    if (quad < QUADS) { cell(s, first, quad); }
  } else {
    if (quad * 4u < WIDTH) { projection(s, first, quad); }
  }
}
