// The state before step s, for the backward kernels that need it.
fn state_before(s: u32, first: u32, u: u32) -> vec4<f32> {
  if (s == 0u) { return read_start(first, u); }
  let at = p.y + (place(s - 1u) * p.batch + rows_of(first)) * UNITS + u;
  return vec4<f32>(y[at.x], y[at.y], y[at.z], y[at.w]);
}
