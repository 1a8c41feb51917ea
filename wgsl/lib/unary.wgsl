// y[i] = op(a[i]) over any strides, one element an invocation.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.n) {
    y[i] = narrow(op(get_a(locate(i).x)));
  }
}
