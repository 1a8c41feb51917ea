// A GRU over a whole sequence (formula: autograd/ops/rnn.py), for four batch rows a workgroup.
// 6 H^2 operations a row and step; reads the weights (12 H^2 bytes) once a step for four rows, from cache.
// The state lies in workgroup memory, one vec4 (four rows) a unit, twice: read one half, write the other.
struct Params {
  steps: u32,
  batch: u32,
  units: u32,
  pad: u32,
  g: u32,       // where the arrays start
  h0: u32,
  w: u32,
  b: u32,
  y: u32,
  gates: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> g: array<E>;
@group(0) @binding(2) var<storage, read> h0: array<E>;
@group(0) @binding(3) var<storage, read> w: array<E>;  // [H, 3H]
@group(0) @binding(4) var<storage, read> b: array<E>;
@group(0) @binding(5) var<storage, read_write> y: array<E>;
@group(0) @binding(6) var<storage, read_write> gates: array<E>;

var<workgroup> h: array<vec4<f32>, 2 * UNITS>;

// Four rows of one column of g; rows beyond the batch read its last one and are never written.
fn g_at(step: u32, first: u32, column: u32) -> vec4<f32> {
  var v = vec4<f32>();
  for (var i = 0u; i < 4u; i++) {
    let row = min(first + i, p.batch - 1u);
    v[i] = f32(g[p.g + (step * p.batch + row) * 3u * UNITS + column]);
  }
  return v;
}

fn sigmoid4(x: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(sigmoid_safe(x.x), sigmoid_safe(x.y), sigmoid_safe(x.z), sigmoid_safe(x.w));
}

fn tanh4(x: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(tanh_safe(x.x), tanh_safe(x.y), tanh_safe(x.z), tanh_safe(x.w));
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) me: u32) {
  let first = group.x * 4u;
  for (var u = me; u < UNITS; u += SIZE) {
    for (var i = 0u; i < 4u; i++) {
      h[u][i] = f32(h0[p.h0 + min(first + i, p.batch - 1u) * UNITS + u]);
    }
  }
  workgroupBarrier();
  let plane = p.steps * p.batch * UNITS;
  for (var t = 0u; t < p.steps; t++) {
    let now = (t & 1u) * UNITS;
    let next = UNITS - now;
    for (var u = me; u < UNITS; u += SIZE) {
      var ur = vec4<f32>(f32(b[p.b + u]));
      var uz = vec4<f32>(f32(b[p.b + UNITS + u]));
      var q = vec4<f32>(f32(b[p.b + 2u * UNITS + u]));
      for (var k = 0u; k < UNITS; k++) {
        let at = p.w + k * 3u * UNITS + u;
        let hk = h[now + k];
        ur += hk * f32(w[at]);
        uz += hk * f32(w[at + UNITS]);
        q += hk * f32(w[at + 2u * UNITS]);
      }
      let r = sigmoid4(ur + g_at(t, first, u));
      let z = sigmoid4(uz + g_at(t, first, UNITS + u));
      let n = tanh4(g_at(t, first, 2u * UNITS + u) + r * q);
      let state = n + z * (h[now + u] - n);
      h[next + u] = state;
      for (var i = 0u; i < 4u && first + i < p.batch; i++) {
        let at = (t * p.batch + first + i) * UNITS + u;
        y[p.y + at] = E(state[i]);
        gates[p.gates + at] = E(r[i]);
        gates[p.gates + plane + at] = E(z[i]);
        gates[p.gates + 2u * plane + at] = E(n[i]);
        gates[p.gates + 3u * plane + at] = E(q[i]);
      }
    }
    workgroupBarrier();
  }
}
