// y = op(a), written through y's own strides into memory that is there already.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.n) {
    let at = locate(i);
    y[at.y] = narrow(op(get_a(at.x)));
  }
}
