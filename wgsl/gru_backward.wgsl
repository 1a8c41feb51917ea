// The gradient of gru.wgsl (formula: autograd/ops/rnn_reverse.py).
// d holds dq, dr', dz', dn' and the state before the step: dr', dz', dn' belong to the input products, dq, dr', dz'
// to the recurrent ones, whose weights' gradient they make with that state.
// cost: 6 H^2 operations a row and step, 12 H^2 bytes a step for four rows; up to 256 invocations, up to 16 KiB shared
const GATES = 3u;
const PHASES = 2u;
const MOST = UNITS;

fn retreat(s: u32, first: u32, u: u32, phase: u32) {
  if (phase == 1u) {
    var sum = vec4<f32>();
    for (var gate = 0u; gate < GATES; gate++) { sum += product(s, first, gate, (gate + 1u) % GATES, gate, u); }
    write_dh(first, u, read_dh(first, u) + sum);
    return;
  }
  let r = read_saved(s, first, 0u, u);
  let z = read_saved(s, first, 1u, u);
  let q = read_saved(s, first, 2u, u);
  let n = read_saved(s, first, 3u, u);
  let come = arrived(s, first, u);
  let dn = come * (1.0 - z) * (1.0 - n * n);
  let before = state_before(s, first, u);
  let dz = come * (before - n) * z * (1.0 - z);
  let dr = dn * q * r * (1.0 - r);
  share(u, dr);
  share(UNITS + u, dz);
  share(2u * UNITS + u, dn * r);
  write_dh(first, u, come * z);
  write_d(s, first, 0u, u, dn * r);
  write_d(s, first, 1u, u, dr);
  write_d(s, first, 2u, u, dz);
  write_d(s, first, 3u, u, dn);
  write_d(s, first, 4u, u, before);
}
