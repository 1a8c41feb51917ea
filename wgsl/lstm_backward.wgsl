// The gradient of lstm.wgsl (formula: autograd/ops/rnn_cells.py). d holds di', df', dg', do', and with a projection
// the gradient of its result. Phase 0 shares that gradient, phase 1 makes the gates', phase 2 that of the state.
@group(0) @binding(2) var<storage, read> saved: array<f32>;  // i, f, g, o, c', tanh(c')
@group(0) @binding(3) var<storage, read> start: array<f32>;  // c0 [B, H]
@group(0) @binding(5) var<storage, read> mask: array<u32>;   // [T, B]
@group(0) @binding(8) var<storage, read_write> dc: array<f32>;  // [B, H]
const GATES = 4u;
const PHASES = select(2u, 3u, PROJECTED);
const MOST = max(QUADS, WIDTH / 4u);
const PARTS = 4u;

fn is_live(s: u32, row: u32) -> bool {
  return p.masked == 0u || mask[p.mask + place(s) * p.batch + row] != 0u;
}

// The gradient of h' before a projection, for unit u of four rows; dh keeps what a masked step hands on.
fn of_output(s: u32, first: u32, u: u32) -> vec4<f32> {
  var v = vec4<f32>();
  for (var i = 0u; i < 4u && first + i < p.batch; i++) {
    let row = first + i;
    let live = is_live(s, row);
    let come = arrived(s, row, u);
    v[i] = select(0.0, come, live);
    dh[p.dh + row * p.width + u] = select(come, 0.0, live);
    if (PROJECTED) { d[d_at(s, row, 4u, u)] = v[i]; }
  }
  return v;
}

// The gradient of o tanh(c') of a quad: that of the projection times its weights.
fn of_projected(s: u32, first: u32, quad: u32) -> mat4x4<f32> {
  var sum = mat4x4<f32>();
  let begin = p.w / 4u + GATES * UNITS * (WIDTH / 4u) + quad;
  for (var k = 0u; k < WIDTH; k += 4u) {
    for (var j = 0u; j < 4u; j++) {
      let a = w[begin + (k + j) * QUADS];
      var v = vec4<f32>();
      if (PERSISTENT) {
        v = x[4u * UNITS + k + j];
      } else {
        for (var i = 0u; i < 4u; i++) { v[i] = d[d_at(s, row_of(first, i), 4u, min(k + j, p.width - 1u))]; }
      }
      sum += mat4x4<f32>(a * v.x, a * v.y, a * v.z, a * v.w);
    }
  }
  return sum;
}

fn of_gates(s: u32, first: u32, u: u32, dm: vec4<f32>) {
  var di = vec4<f32>();
  var df = vec4<f32>();
  var dg = vec4<f32>();
  var dout = vec4<f32>();
  for (var i = 0u; i < 4u && first + i < p.batch; i++) {
    let row = first + i;
    let at = p.saved + unit_at(s, row, u);
    let gi = saved[at];
    let gf = saved[at + part()];
    let gg = saved[at + 2u * part()];
    let go = saved[at + 3u * part()];
    let squashed = saved[at + 5u * part()];
    var before = start[p.start + row * p.units + u];
    if (s > 0u) { before = saved[p.saved + unit_at(s - 1u, row, u) + 4u * part()]; }
    let come = dc[p.dc + row * p.units + u] + dm[i] * go * (1.0 - squashed * squashed);
    di[i] = come * gg * gi * (1.0 - gi);
    df[i] = come * before * gf * (1.0 - gf);
    dg[i] = come * gi * (1.0 - gg * gg);
    dout[i] = dm[i] * squashed * go * (1.0 - go);
    dc[p.dc + row * p.units + u] = come * gf;
    d[d_at(s, row, 0u, u)] = di[i];
    d[d_at(s, row, 1u, u)] = df[i];
    d[d_at(s, row, 2u, u)] = dg[i];
    d[d_at(s, row, 3u, u)] = dout[i];
  }
  share(0u, u, di);
  share(1u, u, df);
  share(2u, u, dg);
  share(3u, u, dout);
}

fn retreat(s: u32, first: u32, quad: u32, phase: u32) {
  let u = quad * 4u;
  let kind = phase + select(1u, 0u, PROJECTED);
  if (kind == 0u) {
    for (var k = u; k < min(u + 4u, p.width); k++) {
      let v = of_output(s, first, k);
      if (PERSISTENT) { x[select(0u, 4u * UNITS, PROJECTED) + k] = v; }
    }
  } else if (kind == 1u) {
    var dm = mat4x4<f32>();
    if (PROJECTED && quad < QUADS) { dm = of_projected(s, first, quad); }
    for (var j = 0u; j < 4u && u + j < p.units; j++) {
      var rows = vec4<f32>(dm[0][j], dm[1][j], dm[2][j], dm[3][j]);
      if (!PROJECTED) { rows = of_output(s, first, u + j); }
      of_gates(s, first, u + j, rows);
    }
  } else if (u < WIDTH) {
    var sum = product(s, first, 0u, 0u, 0u, quad);
    sum += product(s, first, 1u, 1u, 1u, quad);
    sum += product(s, first, 2u, 2u, 2u, quad);
    sum += product(s, first, 3u, 3u, 3u, quad);
    add_to_dh(first, quad, sum);
  }
}
