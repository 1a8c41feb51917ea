// y[i] = x at the position that index[i] names along one axis; extra.x is x's stride there.
// a is index, b is x with that axis left out.
// cost: no arithmetic, 4 bytes of index, 4 read and 4 written an element; 64 invocations, no shared memory
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read> x: array<E>;
@group(0) @binding(3) var<storage, read_write> y: array<E>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.n) {
    let at = locate(i);
    y[i] = x[at.y + u32(index[at.x]) * p.extra.x];
  }
}
