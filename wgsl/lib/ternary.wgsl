// y[i] = op(a[i], b[i], c[i]) over any strides, one element an invocation.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.n) {
    let at = locate(i);
    y[i] = narrow(op(get_a(at.x), get_b(at.y), get_c(at.z)));
  }
}
