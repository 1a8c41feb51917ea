// y[i] = op(a[i]) where a is contiguous, four elements an invocation.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  // The last four may reach past n: buffers are padded to a multiple of four elements.
  if (i * 4u < p.n) {
    let a4 = get_a(i + p.offset.x / 4u);
    y[i] = vec4<S>(narrow(op(a4.x)), narrow(op(a4.y)), narrow(op(a4.z)), narrow(op(a4.w)));
  }
}
