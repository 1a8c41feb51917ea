// The gradient of lstm.wgsl (formula: autograd/ops/rnn_reverse.py). d holds di', df', dg', do', and with a projection
// the gradient of its result, which a phase of its own leaves there: workgroup memory is for the gates' of 256 units.
// Then one phase makes the gates', one that of the state.
// cost: 8 H^2 operations a row and step, 16 H^2 bytes a step for four rows; up to 256 invocations, up to 16 KiB shared
@group(0) @binding(6) var<storage, read> start: array<f32>;  // c0 [B, UNITS]
@group(0) @binding(7) var<storage, read> mask: array<u32>;   // [T, B]
@group(0) @binding(8) var<storage, read_write> dc: array<f32>;  // [B, H]
const GATES = 4u;
const PHASES = select(2u, 3u, PROJECTED);
const MOST = max(UNITS, WIDTH);

// The gradient of the step's result; dh keeps what a masked step hands on.
fn of_result(s: u32, first: u32, u: u32) -> vec4<f32> {
  let row = place(s) * p.batch + rows_of(first);
  var live = vec4<bool>(true);
  if (p.masked != 0u) { live = vec4<u32>(mask[row.x], mask[row.y], mask[row.z], mask[row.w]) != vec4<u32>(); }
  let come = arrived(s, first, u);
  write_dh(first, u, select(come, vec4<f32>(), live));
  return select(vec4<f32>(), come, live);
}

// The gradient of o tanh(c'): that of the projection times its weights.
fn of_projected(s: u32, first: u32, u: u32) -> vec4<f32> {
  var sum = vec4<f32>();
  let begin = GATES * UNITS * WIDTH + u;
  for (var four = 0u; four < p.width; four += 4u) {
    for (var e = 0u; e < 4u; e++) {
      let k = four + e;
      if (WIDTH % 4u != 0u && k >= p.width) { continue; }
      sum += weight(begin + k * UNITS) * read_d(s, first, 4u, k);
    }
  }
  return sum;
}

fn c_before(s: u32, first: u32, u: u32) -> vec4<f32> {
  if (s == 0u) {
    let at = p.start + rows_of(first) * UNITS + u;
    return vec4<f32>(start[at.x], start[at.y], start[at.z], start[at.w]);
  }
  return read_saved(s - 1u, first, 4u, u);
}

fn of_gates(s: u32, first: u32, u: u32, dm: vec4<f32>) {
  let gi = read_saved(s, first, 0u, u);
  let gf = read_saved(s, first, 1u, u);
  let gg = read_saved(s, first, 2u, u);
  let go = read_saved(s, first, 3u, u);
  let squashed = read_saved(s, first, 5u, u);
  let at = rows_of(first) * UNITS + u;
  let come = vec4<f32>(dc[at.x], dc[at.y], dc[at.z], dc[at.w]) + dm * go * (1.0 - squashed * squashed);
  let di = come * gg * gi * (1.0 - gi);
  let df = come * c_before(s, first, u) * gf * (1.0 - gf);
  let dg = come * gi * (1.0 - gg * gg);
  let dout = dm * squashed * go * (1.0 - go);
  let left = come * gf;
  for (var i = 0u; i < 4u; i++) { if (first + i < p.batch) { dc[at[i]] = left[i]; } }
  share(u, di);
  share(UNITS + u, df);
  share(2u * UNITS + u, dg);
  share(3u * UNITS + u, dout);
  write_d(s, first, 0u, u, di);
  write_d(s, first, 1u, u, df);
  write_d(s, first, 2u, u, dg);
  write_d(s, first, 3u, u, dout);
}

fn retreat(s: u32, first: u32, u: u32, phase: u32) {
  let kind = phase + select(1u, 0u, PROJECTED);
  if (kind == 0u) {
    if (u < WIDTH) { write_d(s, first, 4u, u, of_result(s, first, u)); }
  } else if (kind == 1u) {
    if (u < UNITS) {
      var dm = vec4<f32>();
      if (PROJECTED) {
        dm = of_projected(s, first, u);
      } else {
        dm = of_result(s, first, u);
      }
      of_gates(s, first, u, dm);
    }
  } else if (u < WIDTH) {
    var sum = vec4<f32>();
    for (var gate = 0u; gate < GATES; gate++) { sum += product(s, first, gate, gate, gate, u); }
    write_dh(first, u, read_dh(first, u) + sum);
  }
}
