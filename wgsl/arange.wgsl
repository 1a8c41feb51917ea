// y[i] = start + i * step
struct Params {
  n: u32,
  pad0: u32,
  pad1: u32,
  pad2: u32,
  start: T,
  step: T,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<E>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = g.x + g.y * w.x * 64u;
  if (i < p.n) {
    y[i] = E(p.start + T(i) * p.step);
  }
}
