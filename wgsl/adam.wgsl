// One step of Adam or AdamW in place, in one dispatch:
//   w *= 1 - lr * decay             (AdamW), or g += decay * w (Adam)
//   m = beta1 * m + (1 - beta1) * g
//   v = beta2 * v + (1 - beta2) * g * g
//   w -= lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps)
struct Params {
  n: u32,
  decoupled: u32,
  w_offset: u32,
  g_offset: u32,
  m_offset: u32,
  v_offset: u32,
  step: f32,          // lr / bias1
  eps: f32,
  beta1: f32,
  beta2: f32,
  rest1: f32,         // 1 - beta1, rounded once
  rest2: f32,         // 1 - beta2
  root: f32,          // 1 / sqrt(bias2)
  decay: f32,
  shrink: f32,        // 1 - lr * decay
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> w: array<V>;
@group(0) @binding(2) var<storage, read> g: array<V>;
@group(0) @binding(3) var<storage, read_write> m: array<V>;
@group(0) @binding(4) var<storage, read_write> v: array<V>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = at.x + at.y * groups.x * 64u;
  if (i < p.n) {
    var weight = w[p.w_offset + i];
    var grad = g[p.g_offset + i];
    if (p.decoupled == 1u) {
      weight *= p.shrink;
    } else {
      grad += p.decay * weight;
    }
    let m1 = p.beta1 * m[p.m_offset + i] + p.rest1 * grad;
    let v1 = p.beta2 * v[p.v_offset + i] + p.rest2 * grad * grad;
    m[p.m_offset + i] = m1;
    v[p.v_offset + i] = v1;
    w[p.w_offset + i] = weight - p.step * m1 / (sqrt(v1) * p.root + p.eps);
  }
}
