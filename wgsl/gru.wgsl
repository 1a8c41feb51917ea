// A GRU over a whole sequence (formula: autograd/ops/rnn.py), for four batch rows a workgroup.
// 6 H^2 operations a row and step; the weights (12 H^2 bytes) are read once a step for four rows, from cache.
// An invocation owns four units: 48 products a pass of the inner loop for four vec4 loads. The state lies in
// workgroup memory, one vec4 (four rows) a unit, twice: read one half, write the other.
struct Params {
  steps: u32,
  batch: u32,
  units: u32,   // H; UNITS is H rounded up to a multiple of four
  begin: u32,   // the steps of this dispatch: begin, ..., end - 1
  end: u32,
  g: u32,       // where the arrays start
  h0: u32,
  w: u32,
  b: u32,
  y: u32,
  gates: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> g: array<E>;         // [T, B, 3H]
@group(0) @binding(2) var<storage, read> h0: array<E>;        // [B, H]
@group(0) @binding(3) var<storage, read> w: array<vec4<E>>;   // [UNITS, 3, UNITS]
@group(0) @binding(4) var<storage, read> b: array<vec4<E>>;   // [3, UNITS]
@group(0) @binding(5) var<storage, read_write> y: array<E>;
@group(0) @binding(6) var<storage, read_write> gates: array<E>;

const QUADS = UNITS / 4u;
var<workgroup> h: array<vec4<f32>, 2 * UNITS>;

// Matrices hold a unit a row and a batch row a column, as the products come; rows beyond the batch read its last one.
fn g_at(step: u32, first: u32, gate: u32, u: u32) -> mat4x4<f32> {
  var m = mat4x4<f32>();
  for (var i = 0u; i < 4u; i++) {
    let at = p.g + (step * p.batch + min(first + i, p.batch - 1u)) * 3u * p.units + gate * p.units + u;
    // A unit beyond H reads a neighbour's number: finite, and never written.
    let last = p.units - 1u - u;
    m[i] = vec4<f32>(f32(g[at]), f32(g[at + min(1u, last)]), f32(g[at + min(2u, last)]), f32(g[at + min(3u, last)]));
  }
  return m;
}

fn sigmoid4(x: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(sigmoid_safe(x.x), sigmoid_safe(x.y), sigmoid_safe(x.z), sigmoid_safe(x.w));
}

fn tanh4(x: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(tanh_safe(x.x), tanh_safe(x.y), tanh_safe(x.z), tanh_safe(x.w));
}

fn outer(a: vec4<f32>, rows: vec4<f32>) -> mat4x4<f32> {
  return mat4x4<f32>(a * rows.x, a * rows.y, a * rows.z, a * rows.w);
}

fn spread(a: vec4<f32>) -> mat4x4<f32> {
  return mat4x4<f32>(a, a, a, a);
}

// One step of four units for four rows: writes y and the gates, leaves the new state in `next`.
fn step(t: u32, first: u32, quad: u32, now: u32, next: u32) {
  let u = quad * 4u;
  var ur = spread(vec4<f32>(b[p.b / 4u + quad]));
  var uz = spread(vec4<f32>(b[p.b / 4u + QUADS + quad]));
  var q = spread(vec4<f32>(b[p.b / 4u + 2u * QUADS + quad]));
  for (var k = 0u; k < UNITS; k += 4u) {  // by four: software Vulkan counts the passes
    for (var j = 0u; j < 4u; j++) {
      let at = p.w / 4u + (k + j) * 3u * QUADS + quad;
      let hk = h[now + k + j];
      ur += outer(vec4<f32>(w[at]), hk);
      uz += outer(vec4<f32>(w[at + QUADS]), hk);
      q += outer(vec4<f32>(w[at + 2u * QUADS]), hk);
    }
  }
  ur += g_at(t, first, 0u, u);
  uz += g_at(t, first, 1u, u);
  let gn = g_at(t, first, 2u, u);
  let before = transpose(mat4x4<f32>(h[now + u], h[now + u + 1u], h[now + u + 2u], h[now + u + 3u]));
  var state = mat4x4<f32>();
  let plane = p.steps * p.batch * p.units;
  for (var i = 0u; i < 4u; i++) {
    let r = sigmoid4(ur[i]);
    let z = sigmoid4(uz[i]);
    let n = tanh4(gn[i] + r * q[i]);
    state[i] = n + z * (before[i] - n);
    if (first + i >= p.batch) { continue; }
    let at = (t * p.batch + first + i) * p.units + u;
    for (var j = 0u; j < min(4u, p.units - u); j++) {
      y[p.y + at + j] = E(state[i][j]);
      gates[p.gates + at + j] = E(r[j]);
      gates[p.gates + plane + at + j] = E(z[j]);
      gates[p.gates + 2u * plane + at + j] = E(n[j]);
      gates[p.gates + 3u * plane + at + j] = E(q[i][j]);
    }
  }
  let turned = transpose(state);
  for (var j = 0u; j < 4u; j++) { h[next + u + j] = turned[j]; }
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) me: u32) {
  let first = group.x * 4u;
  for (var u = me; u < UNITS; u += SIZE) {
    var rows = vec4<f32>();
    for (var i = 0u; i < 4u && u < p.units; i++) {
      let row = min(first + i, p.batch - 1u);
      if (p.begin == 0u) {
        rows[i] = f32(h0[p.h0 + row * p.units + u]);
      } else {
        rows[i] = f32(y[p.y + ((p.begin - 1u) * p.batch + row) * p.units + u]);
      }
    }
    h[(p.begin & 1u) * UNITS + u] = rows;
  }
  workgroupBarrier();
  for (var t = p.begin; t < p.end; t++) {
    let now = (t & 1u) * UNITS;
    for (var quad = me; quad < QUADS; quad += SIZE) {
      step(t, first, quad, now, UNITS - now);
    }
    workgroupBarrier();
  }
}
