// One step of SGD in place: g += decay * w; w -= lr * g.
// cost: 4 operations an element, 8 bytes read and 4 written; 64 invocations, no shared memory
struct Params {
  n: u32,
  w_offset: u32,
  g_offset: u32,
  pad: u32,
  lr: f32,
  decay: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> w: array<V>;
@group(0) @binding(2) var<storage, read> g: array<V>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = at.x + at.y * groups.x * 64u;
  if (i < p.n) {
    let weight = w[p.w_offset + i];
    w[p.w_offset + i] = weight - p.lr * (g[p.g_offset + i] + p.decay * weight);
  }
}
