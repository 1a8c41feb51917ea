// The gradient of gru.wgsl, last step first, for four batch rows a workgroup (formula: autograd/ops/rnn.py).
// 6 H^2 operations a row and step, as forward; dh stays in the registers of the invocation that owns the unit,
// the gradients of the recurrent products (48 bytes a unit) are shared through workgroup memory.
struct Params {
  steps: u32,
  batch: u32,
  units: u32,
  pad: u32,
  dy: u32,      // where the arrays start
  y: u32,
  gates: u32,
  h0: u32,
  w: u32,
  dg: u32,
  du: u32,
  dh0: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> dy: array<E>;
@group(0) @binding(2) var<storage, read> y: array<E>;
@group(0) @binding(3) var<storage, read> gates: array<E>;
@group(0) @binding(4) var<storage, read> h0: array<E>;
@group(0) @binding(5) var<storage, read> w: array<E>;  // [3H, H]
@group(0) @binding(6) var<storage, read_write> dg: array<E>;
@group(0) @binding(7) var<storage, read_write> du: array<E>;
@group(0) @binding(8) var<storage, read_write> dh0: array<E>;

var<workgroup> d: array<vec4<f32>, 3 * UNITS>;

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) me: u32) {
  let first = group.x * 4u;
  let plane = p.steps * p.batch * UNITS;
  var dh = array<vec4<f32>, OWN>();
  for (var t = p.steps; t > 0u; t--) {
    for (var own = 0u; own < OWN; own++) {
      let u = own * SIZE + me;
      if (u >= UNITS) { break; }
      for (var i = 0u; i < 4u; i++) {
        // Rows beyond the batch repeat its last one: their numbers are finite and never written.
        let row = min(first + i, p.batch - 1u);
        let at = ((t - 1u) * p.batch + row) * UNITS + u;
        let r = f32(gates[p.gates + at]);
        let z = f32(gates[p.gates + plane + at]);
        let n = f32(gates[p.gates + 2u * plane + at]);
        let q = f32(gates[p.gates + 3u * plane + at]);
        var before = 0.0;
        if (t > 1u) {
          before = f32(y[p.y + at - p.batch * UNITS]);
        } else {
          before = f32(h0[p.h0 + row * UNITS + u]);
        }
        let dhi = dh[own][i] + f32(dy[p.dy + at]);
        let dn = dhi * (1.0 - z) * (1.0 - n * n);
        let dz = dhi * (before - n) * z * (1.0 - z);
        let dr = dn * q * r * (1.0 - r);
        d[u][i] = dr;
        d[UNITS + u][i] = dz;
        d[2u * UNITS + u][i] = dn * r;
        dh[own][i] = dhi * z;
        if (first + i < p.batch) {
          let to = ((t - 1u) * p.batch + row) * 3u * UNITS + u;
          dg[p.dg + to] = E(dr);
          dg[p.dg + to + UNITS] = E(dz);
          dg[p.dg + to + 2u * UNITS] = E(dn);
          du[p.du + to] = E(dr);
          du[p.du + to + UNITS] = E(dz);
          du[p.du + to + 2u * UNITS] = E(dn * r);
        }
      }
    }
    workgroupBarrier();
    for (var own = 0u; own < OWN; own++) {
      let u = own * SIZE + me;
      if (u >= UNITS) { break; }
      var sum = dh[own];
      for (var k = 0u; k < 3u * UNITS; k++) {
        sum += d[k] * f32(w[p.w + k * UNITS + u]);
      }
      dh[own] = sum;
    }
    workgroupBarrier();
  }
  for (var own = 0u; own < OWN; own++) {
    let u = own * SIZE + me;
    if (u >= UNITS) { break; }
    for (var i = 0u; i < 4u && first + i < p.batch; i++) {
      dh0[p.dh0 + (first + i) * UNITS + u] = E(dh[own][i]);
    }
  }
}
