// y[i] = op(a[i], b[i], c[i]), four elements an invocation: along the last dimension each
// operand is contiguous or stands still.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  // The last four may reach past n: buffers are padded to a multiple of four elements.
  if (i * 4u < p.n) {
    let at = locate(i * 4u);
    let a4 = get_a(at.x);
    let b4 = get_b(at.y);
    let c4 = get_c(at.z);
    y[i] = vec4<S>(
      narrow(op(a4.x, b4.x, c4.x)), narrow(op(a4.y, b4.y, c4.y)),
      narrow(op(a4.z, b4.z, c4.z)), narrow(op(a4.w, b4.w, c4.w)));
  }
}
