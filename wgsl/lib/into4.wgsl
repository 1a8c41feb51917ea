// y = op(a), both contiguous and n a multiple of four: what lies behind y is not touched.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i * 4u < p.n) {
    let a4 = get_a(i * 4u + p.offset.x);
    y[i + p.offset.y / 4u] =
      vec4<S>(narrow(op(a4.x)), narrow(op(a4.y)), narrow(op(a4.z)), narrow(op(a4.w)));
  }
}
