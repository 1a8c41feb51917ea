// What the backward kernels of gated cells read of the forward pass.
fn read_saved(s: u32, first: u32, number: u32, u: u32) -> vec4<f32> {
  let at = p.saved + ((number * p.steps + place(s)) * p.batch + rows_of(first)) * UNITS + u;
  return vec4<f32>(saved[at.x], saved[at.y], saved[at.z], saved[at.w]);
}

// h0 or c0.
fn read_start(first: u32, u: u32) -> vec4<f32> {
  let at = p.start + rows_of(first) * UNITS + u;
  return vec4<f32>(start[at.x], start[at.y], start[at.z], start[at.w]);
}
