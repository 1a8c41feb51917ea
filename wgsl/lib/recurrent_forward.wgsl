// A recurrent layer over a whole sequence, for four batch rows a workgroup. An invocation owns quads of units; the
// cell's file says how one quad advances by one step (`advance`), in PHASES parts with a barrier behind each.
// PERSISTENT: one dispatch runs the steps begin … end - 1, and states lie in workgroup memory, a vec4 (four rows) a
// unit. Else a dispatch runs one phase of one step, and states are read back from y and saved.
struct Params {
  steps: u32,
  batch: u32,
  units: u32,    // H; UNITS is H rounded up to a multiple of four, QUADS a quarter of that
  width: u32,    // of h: H, or P with a projection; WIDTH is that rounded up
  begin: u32,
  end: u32,
  phase: u32,
  reverse: u32,
  masked: u32,
  save: u32,     // 0: `saved` has room for one step only
  relu: u32,
  rows: u32,     // 4, as a number that compilers do not know: see rows_here
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
@group(0) @binding(1) var<storage, read> g: array<f32>;         // [T, B, GATES * H]
@group(0) @binding(2) var<storage, read> h0: array<f32>;        // [B, width]
@group(0) @binding(3) var<storage, read> c0: array<f32>;        // [B, H]
@group(0) @binding(4) var<storage, read> w: array<vec4<f32>>;   // [WIDTH, GATES, UNITS], and [UNITS, WIDTH] of a projection
@group(0) @binding(5) var<storage, read> b: array<vec4<f32>>;   // [UNITS]: the bias inside the reset gate
@group(0) @binding(6) var<storage, read> mask: array<u32>;      // [T, B]
@group(0) @binding(7) var<storage, read_write> y: array<f32>;   // [T, B, width]
@group(0) @binding(8) var<storage, read_write> saved: array<f32>;  // [parts, T, B, H]

var<workgroup> x: array<vec4<f32>, EXCHANGE>;

fn row_of(first: u32, i: u32) -> u32 {
  return min(first + i, p.batch - 1u);  // beyond the batch: its last row again, never written
}

// How many of the four rows there are. Loops up to it are not unrolled: what is inside is long, and software Vulkan
// would take seconds to compile it four times.
fn rows_here(first: u32) -> u32 {
  return min(p.rows, p.batch - first);
}

// The input products of a quad in four rows. A unit beyond H reads a neighbour's number, which is never written.
fn g_at(s: u32, first: u32, gate: u32, u: u32) -> mat4x4<f32> {
  var m = mat4x4<f32>();
  let last = p.units - 1u - u;
  for (var i = 0u; i < rows_here(first); i++) {
    let at = p.g + ((place(s) * p.batch + first + i) * GATES + gate) * p.units + u;
    m[i] = vec4<f32>(g[at], g[at + min(1u, last)], g[at + min(2u, last)], g[at + min(3u, last)]);
  }
  return m;
}

// Where unit u of a row lies in part 0 of `saved`, and how far apart the parts are.
fn saved_at(s: u32, row: u32, u: u32) -> u32 {
  return p.saved + (select(0u, place(s), p.save != 0u) * p.batch + row) * p.units + u;
}

fn part() -> u32 {
  return select(1u, p.steps, p.save != 0u) * p.batch * p.units;
}

fn h_stored(s: u32, row: u32, k: u32) -> f32 {
  let at = min(k, p.width - 1u);
  if (s == 0u) { return h0[p.h0 + row * p.width + at]; }
  return y[p.y + (place(s - 1u) * p.batch + row) * p.width + at];
}

fn h_stored4(s: u32, first: u32, k: u32) -> vec4<f32> {
  return vec4<f32>(
    h_stored(s, row_of(first, 0u), k), h_stored(s, row_of(first, 1u), k),
    h_stored(s, row_of(first, 2u), k), h_stored(s, row_of(first, 3u), k));
}

// The state before step s: unit k of four rows.
fn h_at(s: u32, first: u32, k: u32) -> vec4<f32> {
  if (PERSISTENT) { return x[h_slot(s) + k]; }
  return h_stored4(s, first, k);
}

fn h_quad(s: u32, first: u32, u: u32) -> mat4x4<f32> {
  return transpose(mat4x4<f32>(h_at(s, first, u), h_at(s, first, u + 1u), h_at(s, first, u + 2u), h_at(s, first, u + 3u)));
}

fn is_live(s: u32, row: u32) -> bool {
  return p.masked == 0u || mask[p.mask + place(s) * p.batch + row] != 0u;
}

fn share(slot: u32, u: u32, m: mat4x4<f32>) {
  if (PERSISTENT) {
    let turned = transpose(m);
    for (var j = 0u; j < 4u; j++) { x[slot + u + j] = turned[j]; }
  }
}

// Write the units of a quad that there are.
fn write_y(s: u32, row: u32, u: u32, v: vec4<f32>) {
  let at = p.y + (place(s) * p.batch + row) * p.width + u;
  for (var j = 0u; j < min(4u, p.width - u); j++) { y[at + j] = v[j]; }
}

fn write_saved(s: u32, row: u32, u: u32, number: u32, v: vec4<f32>) {
  let at = saved_at(s, row, u) + number * part();
  for (var j = 0u; j < min(4u, p.units - u); j++) { saved[at + j] = v[j]; }
}

fn read_saved(s: u32, row: u32, u: u32, number: u32) -> vec4<f32> {
  let at = saved_at(s, row, u) + number * part();
  let last = p.units - 1u - u;
  return vec4<f32>(saved[at], saved[at + min(1u, last)], saved[at + min(2u, last)], saved[at + min(3u, last)]);
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) me: u32) {
  let first = group.x * 4u;
  if (PERSISTENT) {
    for (var k = me; k < WIDTH; k += SIZE) {
      x[h_slot(p.begin) + k] = h_stored4(p.begin, first, k);
    }
    workgroupBarrier();
    for (var s = p.begin; s < p.end; s++) {
      for (var phase = 0u; phase < PHASES; phase++) {
        for (var quad = me; quad < MOST; quad += SIZE) { advance(s, first, quad, phase); }
        workgroupBarrier();
      }
    }
  } else {
    let quad = group.y * SIZE + me;
    if (quad < MOST) { advance(p.begin, first, quad, p.phase); }
  }
}
