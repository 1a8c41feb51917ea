// The gradient of gru.wgsl, last step first, for four batch rows a workgroup (formula: autograd/ops/rnn.py).
// 6 H^2 operations a row and step, as forward; an invocation owns four units and keeps their dh in registers. The
// gradients of the recurrent products (48 bytes a unit) are shared through workgroup memory.
struct Params {
  steps: u32,
  batch: u32,
  units: u32,   // H; UNITS is H rounded up to a multiple of four
  begin: u32,   // the steps of this dispatch: end - 1, ..., begin
  end: u32,
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
@group(0) @binding(5) var<storage, read> w: array<vec4<E>>;  // [3, UNITS, UNITS]
@group(0) @binding(6) var<storage, read_write> dg: array<E>;
@group(0) @binding(7) var<storage, read_write> du: array<E>;
@group(0) @binding(8) var<storage, read_write> dh0: array<E>;

const QUADS = UNITS / 4u;
var<workgroup> d: array<vec4<f32>, 3 * UNITS>;

// The gradients of one unit's gates in four rows: fills d, writes dg and du, returns what of dh goes straight on.
fn gate_gradients(t: u32, first: u32, u: u32, dh: vec4<f32>) -> vec4<f32> {
  let plane = p.steps * p.batch * p.units;
  var direct = vec4<f32>();
  var dr = vec4<f32>();
  var dz = vec4<f32>();
  var dq = vec4<f32>();
  for (var i = 0u; i < 4u; i++) {
    if (first + i >= p.batch) { break; }
    let row = first + i;
    let at = (t * p.batch + row) * p.units + u;
    let r = f32(gates[p.gates + at]);
    let z = f32(gates[p.gates + plane + at]);
    let n = f32(gates[p.gates + 2u * plane + at]);
    let q = f32(gates[p.gates + 3u * plane + at]);
    var before = 0.0;
    if (t > 0u) {
      before = f32(y[p.y + at - p.batch * p.units]);
    } else {
      before = f32(h0[p.h0 + row * p.units + u]);
    }
    let dhi = dh[i] + f32(dy[p.dy + at]);
    let dn = dhi * (1.0 - z) * (1.0 - n * n);
    dz[i] = dhi * (before - n) * z * (1.0 - z);
    dr[i] = dn * q * r * (1.0 - r);
    dq[i] = dn * r;
    direct[i] = dhi * z;
    let to = (t * p.batch + row) * 3u * p.units + u;
    dg[p.dg + to] = E(dr[i]);
    dg[p.dg + to + p.units] = E(dz[i]);
    dg[p.dg + to + 2u * p.units] = E(dn);
    du[p.du + to] = E(dr[i]);
    du[p.du + to + p.units] = E(dz[i]);
    du[p.du + to + 2u * p.units] = E(dq[i]);
  }
  d[u] = dr;
  d[UNITS + u] = dz;
  d[2u * UNITS + u] = dq;
  return direct;
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) me: u32) {
  let first = group.x * 4u;
  var dh = array<mat4x4<f32>, OWN>();  // of each owned quad: a row of the batch a column, a unit a row
  for (var own = 0u; own < OWN; own++) {  // what the dispatch of the later steps left
    let quad = own * SIZE + me;
    if (quad >= QUADS || p.end == p.steps) { break; }
    for (var i = 0u; i < 4u && first + i < p.batch; i++) {
      for (var j = 0u; j < min(4u, p.units - quad * 4u); j++) {
        dh[own][i][j] = f32(dh0[p.dh0 + (first + i) * p.units + quad * 4u + j]);
      }
    }
  }
  for (var step = p.end; step > p.begin; step--) {
    for (var own = 0u; own < OWN; own++) {
      let quad = own * SIZE + me;
      if (quad >= QUADS) { break; }
      var turned = transpose(dh[own]);
      for (var j = 0u; j < 4u; j++) {
        if (quad * 4u + j < p.units) {
          turned[j] = gate_gradients(step - 1u, first, quad * 4u + j, turned[j]);
        }
      }
      dh[own] = transpose(turned);
    }
    workgroupBarrier();
    for (var own = 0u; own < OWN; own++) {
      let quad = own * SIZE + me;
      if (quad >= QUADS) { break; }
      var sum = dh[own];
      for (var gate = 0u; gate < 3u; gate++) {
        for (var k = 0u; k < UNITS; k += 4u) {  // by four: software Vulkan counts the passes
          for (var j = 0u; j < 4u; j++) {
            let wk = vec4<f32>(w[p.w / 4u + (gate * UNITS + k + j) * QUADS + quad]);
            let dk = d[gate * UNITS + k + j];
            sum += mat4x4<f32>(wk * dk.x, wk * dk.y, wk * dk.z, wk * dk.w);
          }
        }
      }
      dh[own] = sum;
    }
    workgroupBarrier();
  }
  for (var own = 0u; own < OWN; own++) {
    let quad = own * SIZE + me;
    if (quad >= QUADS) { break; }
    for (var i = 0u; i < 4u && first + i < p.batch; i++) {
      for (var j = 0u; j < min(4u, p.units - quad * 4u); j++) {
        dh0[p.dh0 + (first + i) * p.units + quad * 4u + j] = E(dh[own][i][j]);
      }
    }
  }
}
