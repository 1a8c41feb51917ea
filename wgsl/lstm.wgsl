// c' = f c + i g, h' = o tanh(c') [times W_hr^T]: formula in autograd/ops/rnn_cells.py. Saved: i, f, g, o, c', tanh(c').
// With a projection phase 0 shares o tanh(c'), and phase 1 multiplies it.
// cost: 8 H^2 operations a row and step, 16 H^2 bytes a step for four rows; up to 256 invocations, up to 16 KiB shared
@group(0) @binding(8) var<storage, read_write> c: array<f32>;  // [B, UNITS]: a number belongs to one invocation
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

fn c_before(first: u32, u: u32) -> vec4<f32> {
  let at = rows_of(first) * UNITS + u;
  return vec4<f32>(c[at.x], c[at.y], c[at.z], c[at.w]);
}

fn store_c(first: u32, u: u32, rows: vec4<f32>) {
  let at = rows_of(first) * UNITS + u;
  for (var i = 0u; i < 4u; i++) { if (first + i < p.batch) { c[at[i]] = rows[i]; } }
}

fn cell(s: u32, first: u32, u: u32) {
  var ui = g_at(s, first, 0u, u) + bias(u);
  var uf = g_at(s, first, 1u, u) + bias(UNITS + u);
  var ug = g_at(s, first, 2u, u) + bias(2u * UNITS + u);
  var uo = g_at(s, first, 3u, u) + bias(3u * UNITS + u);
  for (var four = 0u; four < p.width; four += 4u) {
    for (var e = 0u; e < 4u; e++) {
      let k = four + e;
      if (WIDTH % 4u != 0u && k >= p.width) { continue; }
      let at = k * GATES * UNITS + u;
      let hk = h_at(s, first, k);
      ui += weight(at) * hk;
      uf += weight(at + UNITS) * hk;
      ug += weight(at + 2u * UNITS) * hk;
      uo += weight(at + 3u * UNITS) * hk;
    }
  }
  let zero = vec4<f32>();
  let live = live_rows(s, first);
  let gi = select(zero, sigmoid4(ui), live);
  let gf = select(vec4<f32>(1.0), sigmoid4(uf), live);
  let gg = select(zero, tanh4(ug), live);
  let go = select(zero, sigmoid4(uo), live);
  let new_c = gf * c_before(first, u) + gi * gg;
  store_c(first, u, new_c);
  let squashed = select(zero, tanh4(new_c), live);
  if (PROJECTED) {
    share(WIDTH + u, go * squashed);
  } else {
    let state = select(h_at(s, first, u), go * squashed, live);
    hand_on(s, first, u, state);
  }
  write_saved(s, first, 0u, u, gi);
  write_saved(s, first, 1u, u, gf);
  write_saved(s, first, 2u, u, gg);
  write_saved(s, first, 3u, u, go);
  write_saved(s, first, 4u, u, new_c);
  write_saved(s, first, 5u, u, squashed);
}

fn projection(s: u32, first: u32, u: u32) {
  var sum = vec4<f32>();
  let start = WIDTH * GATES * UNITS + u;
  for (var four = 0u; four < p.units; four += 4u) {
    for (var e = 0u; e < 4u; e++) {
      let k = four + e;
      if (UNITS % 4u != 0u && k >= p.units) { continue; }
      sum += weight(start + k * WIDTH) * m_at(s, first, k);
    }
  }
  let state = select(h_at(s, first, u), sum, live_rows(s, first));
  hand_on(s, first, u, state);
}

fn advance(s: u32, first: u32, u: u32, phase: u32) {
  if (phase == 0u) {
    if (u < UNITS) { cell(s, first, u); }
  } else {
    if (u < WIDTH) { projection(s, first, u); }
  }
}
