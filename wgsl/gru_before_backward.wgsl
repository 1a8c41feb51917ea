// The gradient of gru_before.wgsl (formula: autograd/ops/rnn_reverse.py). d holds dr', dz', dn', the state h before the
// step and r h.
// Phase 0 makes dn' and dz', phase 1 the gradient of r h and dr', phase 2 that of the state.
// cost: 6 H^2 operations a row and step, 12 H^2 bytes a step for four rows; up to 256 invocations, up to 16 KiB shared
const GATES = 3u;
const PHASES = 3u;
const MOST = UNITS;

fn of_candidate(s: u32, first: u32, u: u32) {
  let z = read_saved(s, first, 1u, u);
  let n = read_saved(s, first, 2u, u);
  let come = arrived(s, first, u);
  let dn = come * (1.0 - z) * (1.0 - n * n);
  let dz = come * (state_before(s, first, u) - n) * z * (1.0 - z);
  share(UNITS + u, dz);
  share(2u * UNITS + u, dn);
  write_dh(first, u, come * z);
  write_d(s, first, 1u, u, dz);
  write_d(s, first, 2u, u, dn);
}

fn of_reset(s: u32, first: u32, u: u32) {
  let reset = product(s, first, 2u, 2u, 2u, u);
  let r = read_saved(s, first, 0u, u);
  let before = state_before(s, first, u);
  let dr = reset * before * r * (1.0 - r);
  share(u, dr);
  write_dh(first, u, read_dh(first, u) + reset * r);
  write_d(s, first, 0u, u, dr);
  write_d(s, first, 3u, u, before);
  write_d(s, first, 4u, u, r * before);
}

fn retreat(s: u32, first: u32, u: u32, phase: u32) {
  if (phase == 0u) {
    of_candidate(s, first, u);
  } else if (phase == 1u) {
    of_reset(s, first, u);
  } else {
    var sum = vec4<f32>();
    for (var gate = 0u; gate < 2u; gate++) { sum += product(s, first, gate, gate, gate, u); }
    write_dh(first, u, read_dh(first, u) + sum);
  }
}
