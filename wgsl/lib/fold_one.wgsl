// One chunk of one output an invocation, without barriers.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.count) {
    let at = part(i);
    put(i, walked(kept(at.x), at.y, p.chunks));
  }
}
