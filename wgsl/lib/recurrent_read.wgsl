// What the backward kernels of gated cells read of the forward pass.
@group(0) @binding(5) var<storage, read> saved: array<f32>;  // [parts, T, B, UNITS]

fn read_saved(s: u32, first: u32, number: u32, u: u32) -> vec4<f32> {
  let at = p.saved + ((number * p.steps + place(s)) * p.batch + rows_of(first)) * UNITS + u;
  return vec4<f32>(saved[at.x], saved[at.y], saved[at.z], saved[at.w]);
}
