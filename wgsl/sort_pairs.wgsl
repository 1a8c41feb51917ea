// One step of a bitonic sort by key and then position, in place: elements `gap` apart are put
// in order, upwards or downwards by turns of `run`. No pair equals another, so neither does any
// order but one come out.
struct Params {
  half: u32,                  // half the elements: one invocation for two
  gap: u32,
  run: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> pairs: array<vec2<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let t = g.x + g.y * w.x * 64u;
  if (t < p.half) {
    let i = (t / p.gap) * 2u * p.gap + t % p.gap;
    let a = pairs[i];
    let b = pairs[i + p.gap];
    let after = a.x > b.x || (a.x == b.x && a.y > b.y);
    if (after == ((i & p.run) == 0u)) {
      pairs[i] = b;
      pairs[i + p.gap] = a;
    }
  }
}
