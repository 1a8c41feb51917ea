// The gradient of rnn.wgsl (formula: autograd/ops/rnn_reverse.py).
// cost: 2 H^2 operations a row and step, 4 H^2 bytes a step for four rows; up to 256 invocations, up to 16 KiB shared
@group(0) @binding(5) var<storage, read> y: array<E>;       // [T, B, UNITS]
@group(0) @binding(6) var<storage, read> mask: array<u32>;  // [T, B]
const GATES = 1u;
const PHASES = 2u;
const MOST = UNITS;

fn retreat(s: u32, first: u32, u: u32, phase: u32) {
  if (phase == 1u) {
    write_dh(first, u, read_dh(first, u) + product(s, first, 0u, 0u, 0u, u));
    return;
  }
  let at = (place(s) * p.batch + rows_of(first)) * UNITS + u + p.y;
  let v = vec4<f32>(f32(y[at.x]), f32(y[at.y]), f32(y[at.z]), f32(y[at.w]));
  let row = place(s) * p.batch + rows_of(first);
  var live = vec4<bool>(true);
  if (p.masked != 0u) { live = vec4<u32>(mask[row.x], mask[row.y], mask[row.z], mask[row.w]) != vec4<u32>(); }
  let zero = vec4<f32>();
  let come = arrived(s, first, u);
  let slope = select(1.0 - v * v, select(zero, vec4<f32>(1.0), v > zero), p.relu != 0u);
  let found = select(zero, come * slope, live);
  share(u, found);
  write_dh(first, u, select(come, zero, live));
  write_d(s, first, 0u, u, found);
}
