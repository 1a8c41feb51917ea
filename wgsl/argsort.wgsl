// One step of a bitonic sort of every row by key and then position, in place: elements `gap`
// apart are put in order, upwards or downwards by turns of `run` within the row. No pair equals
// another, so the order is the stable one.
// cost: 1 comparison, 32 bytes for two pairs; 64 invocations, no shared memory; log2(n) (log2(n) + 1) / 2 times for rows of n
struct Params {
  half: u32,                  // half the elements: one invocation for two
  gap: u32,
  run: u32,
  length: u32,                // of a padded row, a power of two
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
    // The last run is the row: upwards, whichever row it is.
    if (after == ((i & (p.length - 1u) & p.run) == 0u)) {
      pairs[i] = b;
      pairs[i + p.gap] = a;
    }
  }
}
