// One step of SGD in place: g += decay * w; w -= lr * g.
// The arrays, load_*, store_* and inside() are declared by webgpu/packed.py, for float32 and 16 bits.
// cost: 4 operations an element, 8 bytes read and 4 written; 64 invocations, no shared memory
struct Params {
  n: u32,
  w_offset: u32,
  g_offset: u32,
  count: u32,  // elements
  lr: f32,
  decay: f32,
}
@group(0) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = at.x + at.y * groups.x * 64u;
  if (i < p.n) {
    let weight = load_w(p.w_offset + i);
    store_w(p.w_offset + i, weight - p.lr * (load_g(p.g_offset + i) + p.decay * weight), inside(i, p.count));
  }
}
