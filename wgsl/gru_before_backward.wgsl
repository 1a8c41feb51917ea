// The gradient of gru_before.wgsl (formula: autograd/ops/rnn_cells.py). d holds dr', dz', dn'.
// Phase 0 makes dn' and dz', phase 1 the gradient of r h and dr', phase 2 that of the state.
@group(0) @binding(2) var<storage, read> saved: array<f32>;  // r, z, n
@group(0) @binding(3) var<storage, read> start: array<f32>;  // h0 [B, H]
@group(0) @binding(5) var<storage, read> y: array<f32>;
const GATES = 3u;
const PHASES = 3u;
const MOST = QUADS;
const PARTS = 3u;

fn state_before(s: u32, row: u32, u: u32) -> f32 {
  if (s > 0u) { return y[p.y + unit_at(s - 1u, row, u)]; }
  return start[p.start + row * p.units + u];
}

fn of_candidate(s: u32, first: u32, u: u32) {
  var dz = vec4<f32>();
  var dn = vec4<f32>();
  for (var i = 0u; i < 4u && first + i < p.batch; i++) {
    let row = first + i;
    let at = p.saved + unit_at(s, row, u);
    let z = saved[at + part()];
    let n = saved[at + 2u * part()];
    let come = arrived(s, row, u);
    dn[i] = come * (1.0 - z) * (1.0 - n * n);
    dz[i] = come * (state_before(s, row, u) - n) * z * (1.0 - z);
    dh[p.dh + row * p.width + u] = come * z;
    d[d_at(s, row, 1u, u)] = dz[i];
    d[d_at(s, row, 2u, u)] = dn[i];
  }
  share(1u, u, dz);
  share(2u, u, dn);
}

fn of_reset(s: u32, first: u32, quad: u32) {
  let u = quad * 4u;
  let reset = product(s, first, 2u, 2u, 2u, quad);
  for (var j = 0u; j < min(4u, p.units - u); j++) {
    var dr = vec4<f32>();
    for (var i = 0u; i < 4u && first + i < p.batch; i++) {
      let row = first + i;
      let r = saved[p.saved + unit_at(s, row, u + j)];
      dr[i] = reset[i][j] * state_before(s, row, u + j) * r * (1.0 - r);
      dh[p.dh + row * p.width + u + j] += reset[i][j] * r;
      d[d_at(s, row, 0u, u + j)] = dr[i];
    }
    share(0u, u + j, dr);
  }
}

fn retreat(s: u32, first: u32, quad: u32, phase: u32) {
  if (phase == 0u) {
    for (var u = quad * 4u; u < min(quad * 4u + 4u, p.units); u++) { of_candidate(s, first, u); }
  } else if (phase == 1u) {
    of_reset(s, first, quad);
  } else {
    var sum = product(s, first, 0u, 0u, 0u, quad);
    sum += product(s, first, 1u, 1u, 1u, quad);
    add_to_dh(first, quad, sum);
  }
}
