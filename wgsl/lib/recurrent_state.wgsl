// The state before step s, for the backward kernels that need it.
@group(0) @binding(6) var<storage, read> start: array<E>;  // h0 [B, UNITS]
@group(0) @binding(7) var<storage, read> y: array<E>;      // [T, B, UNITS]

fn state_before(s: u32, first: u32, u: u32) -> vec4<f32> {
  if (s == 0u) {
    let at = p.start + rows_of(first) * UNITS + u;
    return vec4<f32>(f32(start[at.x]), f32(start[at.y]), f32(start[at.z]), f32(start[at.w]));
  }
  let at = p.y + (place(s - 1u) * p.batch + rows_of(first)) * UNITS + u;
  return vec4<f32>(f32(y[at.x]), f32(y[at.y]), f32(y[at.z]), f32(y[at.w]));
}
