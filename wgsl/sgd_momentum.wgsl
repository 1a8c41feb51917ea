// One step of SGD with momentum in place:
//   g += decay * w
//   m = g at the first step, else momentum * m + (1 - dampening) * g
//   w -= lr * m, or with Nesterov w -= lr * (g + momentum * m)
// cost: 7 operations an element, 12 bytes read and 8 written; 64 invocations, no shared memory
struct Params {
  n: u32,
  w_offset: u32,
  g_offset: u32,
  m_offset: u32,
  lr: f32,
  decay: f32,
  momentum: f32,
  keep: f32,          // 1 - dampening
  nesterov: u32,
  first: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> w: array<V>;
@group(0) @binding(2) var<storage, read> g: array<V>;
@group(0) @binding(3) var<storage, read_write> m: array<V>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = at.x + at.y * groups.x * 64u;
  if (i < p.n) {
    let weight = w[p.w_offset + i];
    let grad = g[p.g_offset + i] + p.decay * weight;
    var m1 = grad;
    // What m holds before the first step is nobody's: it must not even be multiplied by 0.
    if (p.first == 0u) {
      m1 = p.momentum * m[p.m_offset + i] + p.keep * grad;
    }
    m[p.m_offset + i] = m1;
    w[p.w_offset + i] = weight - p.lr * select(m1, grad + p.momentum * m1, p.nesterov == 1u);
  }
}
