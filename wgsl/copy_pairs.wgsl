// Copies 16-bit elements, whatever they stand for, into rows of whole words: a word of y, two elements, an invocation.
// a is the target, counted in pairs; b is the source. lib/params.wgsl
// cost: no arithmetic, 4 bytes read and 4 written for two elements; 64 invocations, no shared memory
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.n) {
    let at = locate(i);
    y[at.x / 2u] = half_at(at.y) | (half_at(at.y + p.extra.x) << 16u);
  }
}
