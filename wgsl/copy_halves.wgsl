// Copies 16-bit elements, whatever they stand for, into any places: an element an invocation.
// Two invocations may own the halves of one word, so each changes its own bits alone, atomically: no other
// invocation touches them, and nobody reads y meanwhile. a is the target, b the source. lib/params.wgsl
// cost: no arithmetic, 4 bytes read and 2 written an element, by atomics; 64 invocations, no shared memory
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.n) {
    let at = locate(i);
    let shift = 16u * (at.x & 1u);
    atomicAnd(&y[at.x / 2u], ~(0xffffu << shift));
    atomicOr(&y[at.x / 2u], half_at(at.y) << shift);
  }
}
