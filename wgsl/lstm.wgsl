// c' = f c + i g, h' = o tanh(c') [times W_hr^T]: formula and saved values in autograd/ops/rnn_cells.py.
// With a projection phase 0 shares o tanh(c'), and phase 1 multiplies it.
// cost: 8 H^2 operations a row and step, 16 H^2 bytes a step for four rows; up to 256 invocations, up to 16 KiB shared
const GATES = 4u;
const PHASES = select(1u, 2u, PROJECTED);
const MOST = max(UNITS, WIDTH);

fn h_slot(s: u32) -> u32 {
  return select((s & 1u) * UNITS, 0u, PROJECTED);
}

fn m_at(s: u32, first: u32, k: u32) -> vec4<f32> {
  if (PERSISTENT) { return x[WIDTH + k]; }
  return read_saved(s, first, 3u, k) * read_saved(s, first, 5u, k);
}

fn c_before(s: u32, first: u32, u: u32) -> vec4<f32> {
  if (s > 0u) { return read_saved(s - 1u, first, 4u, u); }
  let at = p.c0 + rows_of(first) * UNITS + u;
  return vec4<f32>(c0[at.x], c0[at.y], c0[at.z], c0[at.w]);
}

fn cell(s: u32, first: u32, u: u32) {
  var ui = g_at(s, first, 0u, u);
  var uf = g_at(s, first, 1u, u);
  var ug = g_at(s, first, 2u, u);
  var uo = g_at(s, first, 3u, u);
  for (var four = 0u; four < p.width; four += 4u) {
    for (var e = 0u; e < 4u; e++) {
      let k = four + e;
      if (WIDTH % 4u != 0u && k >= p.width) { continue; }
      let at = p.w + k * GATES * UNITS + u;
      let hk = h_at(s, first, k);
      ui += w[at] * hk;
      uf += w[at + UNITS] * hk;
      ug += w[at + 2u * UNITS] * hk;
      uo += w[at + 3u * UNITS] * hk;
    }
  }
  let zero = vec4<f32>();
  let live = live_rows(s, first);
  let gi = select(zero, sigmoid4(ui), live);
  let gf = select(vec4<f32>(1.0), sigmoid4(uf), live);
  let gg = select(zero, tanh4(ug), live);
  let go = select(zero, sigmoid4(uo), live);
  let c = gf * c_before(s, first, u) + gi * gg;
  let squashed = select(zero, tanh4(c), live);
  if (PROJECTED) {
    share(WIDTH + u, go * squashed);
  } else {
    let state = select(h_at(s, first, u), go * squashed, live);
    share(UNITS - h_slot(s) + u, state);
    write_y(s, first, u, state);
  }
  write_saved(s, first, 0u, u, gi);
  write_saved(s, first, 1u, u, gf);
  write_saved(s, first, 2u, u, gg);
  write_saved(s, first, 3u, u, go);
  write_saved(s, first, 4u, u, c);
  write_saved(s, first, 5u, u, squashed);
}

fn projection(s: u32, first: u32, u: u32) {
  var sum = vec4<f32>();
  let start = p.w + WIDTH * GATES * UNITS + u;
  for (var four = 0u; four < p.units; four += 4u) {
    for (var e = 0u; e < 4u; e++) {
      let k = four + e;
      if (UNITS % 4u != 0u && k >= p.units) { continue; }
      sum += w[start + k * WIDTH] * m_at(s, first, k);
    }
  }
  let state = select(h_at(s, first, u), sum, live_rows(s, first));
  share(u, state);
  write_y(s, first, u, state);
}

fn advance(s: u32, first: u32, u: u32, phase: u32) {
  if (phase == 0u) {
    if (u < UNITS) { cell(s, first, u); }
  } else {
    if (u < WIDTH) { projection(s, first, u); }
  }
}
