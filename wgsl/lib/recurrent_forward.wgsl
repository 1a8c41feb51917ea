// A recurrent layer over a whole sequence, for four batch rows a workgroup: every vec4 here holds four rows. An
// invocation owns units; the cell's file says how a unit advances by one step (`advance`), in PHASES parts with a
// barrier behind each. Neighbouring invocations read neighbouring weights; a weight serves four rows.
// PERSISTENT: one dispatch runs the steps begin … end - 1, and states lie in workgroup memory, a vec4 a unit.
// Else a dispatch runs one phase of one step, and the states of the other invocations are read back from h.
// Operands are of the layer's own type, E; what the layer keeps to itself is float32.
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
  biased: u32,
  save: u32,     // 0: `saved` has room for one step only
  relu: u32,
  g: u32,        // where the arrays start that may be views
  w: u32,
  b: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> g: array<f32>;     // [T, B, GATES * UNITS]
@group(0) @binding(2) var<storage, read> w: array<E>;       // [WIDTH, GATES, UNITS], and [UNITS, WIDTH] of a projection
@group(0) @binding(3) var<storage, read> b: array<E>;       // [GATES * UNITS]: the biases of the state's products
@group(0) @binding(4) var<storage, read> mask: array<u32>;  // [T, B]
@group(0) @binding(5) var<storage, read_write> h: array<f32>;  // [2, B, WIDTH]: the state before step s in part s & 1

var<workgroup> x: array<vec4<f32>, EXCHANGE>;

// The place in memory of what is computed s-th.
fn place(s: u32) -> u32 {
  return select(s, p.steps - 1u - s, p.reverse != 0u);
}

// The four rows; beyond the batch its last one again.
fn rows_of(first: u32) -> vec4<u32> {
  return min(vec4<u32>(first, first + 1u, first + 2u, first + 3u), vec4<u32>(p.batch - 1u));
}

fn weight(i: u32) -> f32 {
  return f32(w[p.w + i]);
}

fn bias(i: u32) -> f32 {
  if (p.biased == 0u) { return 0.0; }
  return f32(b[p.b + i]);
}

// What enters a gate of the input.
fn g_at(s: u32, first: u32, gate: u32, u: u32) -> vec4<f32> {
  let at = p.g + ((place(s) * p.batch + rows_of(first)) * GATES + gate) * UNITS + u;
  return vec4<f32>(g[at.x], g[at.y], g[at.z], g[at.w]);
}

fn h_in_memory(s: u32, first: u32, k: u32) -> vec4<u32> {
  return ((s & 1u) * p.batch + rows_of(first)) * WIDTH + k;
}

fn h_stored(s: u32, first: u32, k: u32) -> vec4<f32> {
  let at = h_in_memory(s, first, k);
  return vec4<f32>(h[at.x], h[at.y], h[at.z], h[at.w]);
}

fn store_h(s: u32, first: u32, k: u32, rows: vec4<f32>) {
  let at = h_in_memory(s, first, k);
  for (var i = 0u; i < 4u; i++) { if (first + i < p.batch) { h[at[i]] = rows[i]; } }
}

// Unit k of the state before step s.
fn h_at(s: u32, first: u32, k: u32) -> vec4<f32> {
  if (PERSISTENT) { return x[h_slot(s) + k]; }
  return h_stored(s, first, k);
}

fn share(at: u32, rows: vec4<f32>) {
  if (PERSISTENT) { x[at] = rows; }
}

// Unit u of the state after step s: for the next step, and into y.
fn hand_on(s: u32, first: u32, u: u32, rows: vec4<f32>) {
  if (PERSISTENT) {
    x[h_slot(s + 1u) + u] = rows;
  } else {
    store_h(s + 1u, first, u, rows);
  }
  write_y(s, first, u, rows);
}

fn live_rows(s: u32, first: u32) -> vec4<bool> {
  if (p.masked == 0u) { return vec4<bool>(true); }
  let at = place(s) * p.batch + rows_of(first);
  return vec4<u32>(mask[at.x], mask[at.y], mask[at.z], mask[at.w]) != vec4<u32>();
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
      write_pairs(s, first, me);
    }
    for (var k = me; k < WIDTH; k += SIZE) { store_h(p.end, first, k, x[h_slot(p.end) + k]); }
  } else {
    let u = group.y * SIZE + me;
    if (u < MOST) { advance(p.begin, first, u, p.phase); }
  }
}
