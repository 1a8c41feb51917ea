// The gradient of gru.wgsl (formula: autograd/ops/rnn_cells.py): 6 H^2 operations a row and step, as forward.
// d holds dq, dr', dz', dn': the last three belong to the input products, the first three to the recurrent ones.
@group(0) @binding(2) var<storage, read> saved: array<f32>;  // r, z, q, n
@group(0) @binding(3) var<storage, read> start: array<f32>;  // h0 [B, H]
@group(0) @binding(5) var<storage, read> y: array<f32>;
const GATES = 3u;
const PHASES = 2u;
const MOST = QUADS;
const PARTS = 4u;

fn gate_gradients(s: u32, first: u32, u: u32) {
  var dr = vec4<f32>();
  var dz = vec4<f32>();
  var dq = vec4<f32>();
  for (var i = 0u; i < 4u && first + i < p.batch; i++) {
    let row = first + i;
    let at = p.saved + unit_at(s, row, u);
    let r = saved[at];
    let z = saved[at + part()];
    let q = saved[at + 2u * part()];
    let n = saved[at + 3u * part()];
    var before = start[p.start + row * p.units + u];
    if (s > 0u) { before = y[p.y + unit_at(s - 1u, row, u)]; }
    let come = arrived(s, row, u);
    let dn = come * (1.0 - z) * (1.0 - n * n);
    dz[i] = come * (before - n) * z * (1.0 - z);
    dr[i] = dn * q * r * (1.0 - r);
    dq[i] = dn * r;
    dh[p.dh + row * p.width + u] = come * z;
    d[d_at(s, row, 0u, u)] = dq[i];
    d[d_at(s, row, 1u, u)] = dr[i];
    d[d_at(s, row, 2u, u)] = dz[i];
    d[d_at(s, row, 3u, u)] = dn;
  }
  share(0u, u, dr);
  share(1u, u, dz);
  share(2u, u, dq);
}

fn retreat(s: u32, first: u32, quad: u32, phase: u32) {
  if (phase == 0u) {
    for (var u = quad * 4u; u < min(quad * 4u + 4u, p.units); u++) { gate_gradients(s, first, u); }
  } else {
    var sum = product(s, first, 0u, 1u, 0u, quad);
    sum += product(s, first, 1u, 2u, 1u, quad);
    sum += product(s, first, 2u, 0u, 2u, quad);
    add_to_dh(first, quad, sum);
  }
}
