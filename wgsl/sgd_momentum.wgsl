// One step of SGD with momentum in place:
//   g += decay * w
//   m = g at the first step, else momentum * m + (1 - dampening) * g
//   w -= lr * m, or with Nesterov w -= lr * (g + momentum * m)
// The arrays, load_*, store_* and inside() are declared by webgpu/packed.py, for float32 and 16 bits.
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
  count: u32,         // elements
}
@group(0) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = at.x + at.y * groups.x * 64u;
  if (i < p.n) {
    let weight = load_w(p.w_offset + i);
    let grad = load_g(p.g_offset + i) + p.decay * weight;
    var m1 = grad;
    // What m holds before the first step is nobody's: it must not even be multiplied by 0.
    if (p.first == 0u) {
      m1 = p.momentum * load_m(p.m_offset + i) + p.keep * grad;
    }
    let live = inside(i, p.count);
    store_m(p.m_offset + i, m1, live);
    store_w(p.w_offset + i, weight - p.lr * select(m1, grad + p.momentum * m1, p.nesterov == 1u), live);
  }
}
