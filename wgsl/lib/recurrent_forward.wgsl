// A recurrent layer over a whole sequence, for four batch rows a workgroup: every vec4 here holds four rows. An
// invocation owns units; the cell's file says how a unit advances by one step (`advance`), in PHASES parts with a
// barrier behind each. Neighbouring invocations read neighbouring weights; a weight serves four rows.
// PERSISTENT: one dispatch runs the steps begin … end - 1, and states lie in workgroup memory, a vec4 a unit.
// Else a dispatch runs one phase of one step, and states are read back from y and saved.
struct Params {
  steps: u32,
  batch: u32,
  units: u32,    // UNITS and WIDTH, as numbers that compilers do not know: loops over constants are unrolled,
  width: u32,    // by four as is wanted here, but all of them takes software Vulkan seconds to compile
  begin: u32,
  end: u32,
  phase: u32,
  reverse: u32,
  masked: u32,
  save: u32,     // 0: `saved` has room for one step only
  relu: u32,
  g: u32,        // where the arrays start
  h0: u32,
  c0: u32,
  w: u32,
  b: u32,
  mask: u32,
  y: u32,
  saved: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> g: array<f32>;     // [T, B, GATES * UNITS]
@group(0) @binding(2) var<storage, read> h0: array<f32>;    // [B, WIDTH]
@group(0) @binding(3) var<storage, read> c0: array<f32>;    // [B, UNITS]
@group(0) @binding(4) var<storage, read> w: array<f32>;     // [WIDTH, GATES, UNITS], and [UNITS, WIDTH] of a projection
@group(0) @binding(5) var<storage, read> b: array<f32>;     // [GATES * UNITS]: the biases of the state's products, of a GRU
@group(0) @binding(6) var<storage, read> mask: array<u32>;  // [T, B]
@group(0) @binding(7) var<storage, read_write> y: array<f32>;      // [T, B, WIDTH]
@group(0) @binding(8) var<storage, read_write> saved: array<f32>;  // [parts, T, B, UNITS]

var<workgroup> x: array<vec4<f32>, EXCHANGE>;

// The place in memory of what is computed s-th.
fn place(s: u32) -> u32 {
  return select(s, p.steps - 1u - s, p.reverse != 0u);
}

// The four rows; beyond the batch its last one again, which is written again.
fn rows_of(first: u32) -> vec4<u32> {
  return min(vec4<u32>(first, first + 1u, first + 2u, first + 3u), vec4<u32>(p.batch - 1u));
}

fn g_at(s: u32, first: u32, gate: u32, u: u32) -> vec4<f32> {
  let at = p.g + ((place(s) * p.batch + rows_of(first)) * GATES + gate) * UNITS + u;
  return vec4<f32>(g[at.x], g[at.y], g[at.z], g[at.w]);
}

fn h_stored(s: u32, first: u32, k: u32) -> vec4<f32> {
  if (s == 0u) {
    let at = p.h0 + rows_of(first) * WIDTH + k;
    return vec4<f32>(h0[at.x], h0[at.y], h0[at.z], h0[at.w]);
  }
  let at = p.y + (place(s - 1u) * p.batch + rows_of(first)) * WIDTH + k;
  return vec4<f32>(y[at.x], y[at.y], y[at.z], y[at.w]);
}

// Unit k of the state before step s.
fn h_at(s: u32, first: u32, k: u32) -> vec4<f32> {
  if (PERSISTENT) { return x[h_slot(s) + k]; }
  return h_stored(s, first, k);
}

fn share(at: u32, rows: vec4<f32>) {
  if (PERSISTENT) { x[at] = rows; }
}

fn live_rows(s: u32, first: u32) -> vec4<bool> {
  if (p.masked == 0u) { return vec4<bool>(true); }
  let at = p.mask + place(s) * p.batch + rows_of(first);
  return vec4<u32>(mask[at.x], mask[at.y], mask[at.z], mask[at.w]) != vec4<u32>();
}

fn write_y(s: u32, first: u32, u: u32, rows: vec4<f32>) {
  let at = p.y + (place(s) * p.batch + rows_of(first)) * WIDTH + u;
  for (var i = 0u; i < 4u; i++) { if (first + i < p.batch) { y[at[i]] = rows[i]; } }
}

// Where unit u of the rows lies in part `number` of saved.
fn saved_at(s: u32, first: u32, number: u32, u: u32) -> vec4<u32> {
  let kept = select(vec2<u32>(0u, 1u), vec2<u32>(place(s), p.steps), p.save != 0u);
  return p.saved + ((number * kept.y + kept.x) * p.batch + rows_of(first)) * UNITS + u;
}

fn write_saved(s: u32, first: u32, number: u32, u: u32, rows: vec4<f32>) {
  let at = saved_at(s, first, number, u);
  for (var i = 0u; i < 4u; i++) { if (first + i < p.batch) { saved[at[i]] = rows[i]; } }
}

fn read_saved(s: u32, first: u32, number: u32, u: u32) -> vec4<f32> {
  let at = saved_at(s, first, number, u);
  return vec4<f32>(saved[at.x], saved[at.y], saved[at.z], saved[at.w]);
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) me: u32) {
  let first = group.x * 4u;
  if (PERSISTENT) {
    for (var k = me; k < WIDTH; k += SIZE) { x[h_slot(p.begin) + k] = h_stored(p.begin, first, k); }
    workgroupBarrier();
    for (var s = p.begin; s < p.end; s++) {
      for (var phase = 0u; phase < PHASES; phase++) {
        for (var u = me; u < MOST; u += SIZE) { advance(s, first, u, phase); }
        workgroupBarrier();
      }
    }
  } else {
    let u = group.y * SIZE + me;
    if (u < MOST) { advance(p.begin, first, u, p.phase); }
  }
}
