// The gradient of rnn.wgsl (formula: autograd/ops/rnn_cells.py).
@group(0) @binding(2) var<storage, read> y: array<f32>;
@group(0) @binding(3) var<storage, read> mask: array<u32>;  // [T, B]
@group(0) @binding(5) var<storage, read> unused: array<f32>;
const GATES = 1u;
const PHASES = 2u;
const MOST = QUADS;
const PARTS = 1u;

fn retreat(s: u32, first: u32, quad: u32, phase: u32) {
  if (phase == 1u) {
    add_to_dh(first, quad, product(s, first, 0u, 0u, 0u, quad));
    return;
  }
  for (var u = quad * 4u; u < min(quad * 4u + 4u, p.units); u++) {
    var slope = vec4<f32>();
    for (var i = 0u; i < 4u && first + i < p.batch; i++) {
      let row = first + i;
      let live = p.masked == 0u || mask[p.mask + place(s) * p.batch + row] != 0u;
      let v = y[p.y + unit_at(s, row, u)];
      let come = arrived(s, row, u);
      slope[i] = select(0.0, come * select(1.0 - v * v, select(0.0, 1.0, v > 0.0), p.relu != 0u), live);
      dh[p.dh + row * p.width + u] = select(come, 0.0, live);
      d[d_at(s, row, 0u, u)] = slope[i];
    }
    share(0u, u, slope);
  }
}
