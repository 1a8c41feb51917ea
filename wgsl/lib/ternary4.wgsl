// y[i] = op(a[i], b[i], c[i]) where all are contiguous or numbers, four elements an invocation.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  // The last four may reach past n: buffers are padded to a multiple of four elements.
  if (i * 4u < p.n) {
    let a4 = get_a(i + p.offset.x / 4u);
    let b4 = get_b(i + p.offset.y / 4u);
    let c4 = get_c(i + p.offset.z / 4u);
    y[i] = vec4<S>(
      narrow(op(a4.x, b4.x, c4.x)), narrow(op(a4.y, b4.y, c4.y)),
      narrow(op(a4.z, b4.z, c4.z)), narrow(op(a4.w, b4.w, c4.w)));
  }
}
