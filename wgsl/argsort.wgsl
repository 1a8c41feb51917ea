// One step of a bitonic sort of every row by key and then position, in place and upwards: of two elements whose places
// differ by `mask`, the smaller one goes first. A run of two sorted halves is sorted by the mask that turns its second half
// round (run - 1: the first element meets the last), then by run / 4, run / 8, … 1. No pair equals another, so the order is
// the stable one.
// cost: 1 comparison, 32 bytes for two pairs; 64 invocations, no shared memory; log2(n) (log2(n) + 1) / 2 times for rows of n
struct Params {
  half: u32,                  // half the elements: one invocation for two
  gap: u32,                   // the highest bit of mask
  mask: u32,
  unused: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> pairs: array<vec2<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let t = g.x + g.y * w.x * 64u;
  if (t < p.half) {
    let i = (t / p.gap) * 2u * p.gap + t % p.gap;
    let j = i ^ p.mask;
    let a = pairs[i];
    let b = pairs[j];
    if (a.x > b.x || (a.x == b.x && a.y > b.y)) {
      pairs[i] = b;
      pairs[j] = a;
    }
  }
}
