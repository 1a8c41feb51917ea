// The gradient of a recurrent layer, last step first, for four batch rows a workgroup: every vec4 here holds four rows.
// An invocation owns units. `dh` (and `dc`) hold the gradient that has arrived at the state, in memory, each number
// touched by one invocation. The cell's file says in which phases a unit goes back one step (`retreat`): products
// read what all units shared, phase 0 nothing that another unit made.
// PERSISTENT: one dispatch runs the steps end - 1 … begin. Else a dispatch runs one phase of one step, and that of the
// last phase goes on to phase 0 of the step before: only where the walk starts has phase 0 a dispatch of its own.
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
  relu: u32,
  given: u32,    // whether there is a dy
  dy: u32,       // where the arrays start that may be views
  y: u32,
  saved: u32,
  start: u32,
  w: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> dy: array<E>;          // [T, B, WIDTH]
@group(0) @binding(2) var<storage, read> w: array<E>;           // [GATES, UNITS, WIDTH], and [WIDTH, UNITS] of a projection
@group(0) @binding(3) var<storage, read_write> d: array<f32>;   // [T, B, D_WIDTH]: gradients, UNITS of each kind
@group(0) @binding(4) var<storage, read_write> dh: array<f32>;  // [B, WIDTH]

var<workgroup> x: array<vec4<f32>, EXCHANGE>;

fn place(s: u32) -> u32 {
  return select(s, p.steps - 1u - s, p.reverse != 0u);
}

fn rows_of(first: u32) -> vec4<u32> {
  return min(vec4<u32>(first, first + 1u, first + 2u, first + 3u), vec4<u32>(p.batch - 1u));
}

fn weight(i: u32) -> f32 {
  return f32(w[p.w + i]);
}

fn d_at(s: u32, first: u32, number: u32, u: u32) -> vec4<u32> {
  return (place(s) * p.batch + rows_of(first)) * D_WIDTH + number * UNITS + u;
}

fn write_d(s: u32, first: u32, number: u32, u: u32, rows: vec4<f32>) {
  let at = d_at(s, first, number, u);
  for (var i = 0u; i < 4u; i++) { if (first + i < p.batch) { d[at[i]] = rows[i]; } }
}

fn read_d(s: u32, first: u32, number: u32, u: u32) -> vec4<f32> {
  let at = d_at(s, first, number, u);
  return vec4<f32>(d[at.x], d[at.y], d[at.z], d[at.w]);
}

fn read_dh(first: u32, u: u32) -> vec4<f32> {
  let at = rows_of(first) * WIDTH + u;
  return vec4<f32>(dh[at.x], dh[at.y], dh[at.z], dh[at.w]);
}

fn write_dh(first: u32, u: u32, rows: vec4<f32>) {
  let at = rows_of(first) * WIDTH + u;
  for (var i = 0u; i < 4u; i++) { if (first + i < p.batch) { dh[at[i]] = rows[i]; } }
}

// What has arrived at unit u of h' at step s, its own dy included.
fn arrived(s: u32, first: u32, u: u32) -> vec4<f32> {
  let own = read_dh(first, u);
  if (p.given == 0u) { return own; }
  let at = p.dy + (place(s) * p.batch + rows_of(first)) * WIDTH + u;
  return own + vec4<f32>(f32(dy[at.x]), f32(dy[at.y]), f32(dy[at.z]), f32(dy[at.w]));
}

fn share(at: u32, rows: vec4<f32>) {
  if (PERSISTENT) { x[at] = rows; }
}

// The sum over the units k of a gate: gradient (number `number` of d, shared in slot `slot`) times weight.
fn product(s: u32, first: u32, slot: u32, number: u32, gate: u32, u: u32) -> vec4<f32> {
  var sum = vec4<f32>();
  for (var four = 0u; four < p.units; four += 4u) {
    for (var e = 0u; e < 4u; e++) {
      let k = four + e;
      if (UNITS % 4u != 0u && k >= p.units) { continue; }
      var v = vec4<f32>();
      if (PERSISTENT) {
        v = x[slot * UNITS + k];
      } else {
        v = read_d(s, first, number, k);
      }
      sum += weight((gate * UNITS + k) * WIDTH + u) * v;
    }
  }
  return sum;
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) me: u32) {
  let first = group.x * 4u;
  if (PERSISTENT) {
    for (var step = p.end; step > p.begin; step--) {
      for (var phase = 0u; phase < PHASES; phase++) {
        for (var u = me; u < MOST; u += SIZE) { retreat(step - 1u, first, u, phase); }
        if (PROJECTED) { storageBarrier(); }  // its gradient is read back from d
        workgroupBarrier();
      }
    }
  } else {
    let u = group.y * SIZE + me;
    if (u < MOST) {
      retreat(p.begin, first, u, p.phase);
      if (p.phase == PHASES - 1u && p.begin > 0u) { retreat(p.begin - 1u, first, u, 0u); }
    }
  }
}
