// The gradient of a recurrent layer, last step first, for four batch rows a workgroup. An invocation owns quads of
// units; `dh` (and `dc`) hold the gradient that has arrived at the state, in memory, each number touched by one
// invocation. Phases as the cell's file says (`retreat`): products read what all units of four rows shared.
// PERSISTENT: one dispatch runs the steps end - 1 … begin. Else a dispatch runs one phase of one step.
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
  relu: u32,
  given: u32,    // whether there is a dy
  dy: u32,       // where the arrays start
  y: u32,
  saved: u32,
  start: u32,
  w: u32,
  mask: u32,
  d: u32,
  dh: u32,
  dc: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> dy: array<f32>;       // [T, B, width]
@group(0) @binding(4) var<storage, read> w: array<vec4<f32>>;  // [GATES, UNITS, WIDTH], and [WIDTH, UNITS] of a projection
@group(0) @binding(6) var<storage, read_write> d: array<f32>;  // [T, B, PARTS * H (+ P)]
@group(0) @binding(7) var<storage, read_write> dh: array<f32>; // [B, width]

var<workgroup> x: array<vec4<f32>, EXCHANGE>;

fn place(s: u32) -> u32 {
  return select(s, p.steps - 1u - s, p.reverse != 0u);
}

fn row_of(first: u32, i: u32) -> u32 {
  return min(first + i, p.batch - 1u);
}

// Where unit u of a row lies in [T, B, H].
fn unit_at(s: u32, row: u32, u: u32) -> u32 {
  return (place(s) * p.batch + row) * p.units + u;
}

fn part() -> u32 {
  return p.steps * p.batch * p.units;
}

fn d_at(s: u32, row: u32, number: u32, u: u32) -> u32 {
  return p.d + (place(s) * p.batch + row) * D_WIDTH + number * p.units + u;
}

// What has arrived at unit u of h' at step s, its own dy included.
fn arrived(s: u32, row: u32, u: u32) -> f32 {
  let own = dh[p.dh + row * p.width + u];
  if (p.given == 0u) { return own; }
  return own + dy[p.dy + (place(s) * p.batch + row) * p.width + u];
}

// Gradient `number` of unit k in four rows, as retreat() shared it in slot `slot`.
fn shared_at(s: u32, first: u32, slot: u32, number: u32, k: u32) -> vec4<f32> {
  if (PERSISTENT) { return x[slot * UNITS + k]; }
  var v = vec4<f32>();
  for (var i = 0u; i < 4u; i++) { v[i] = d[d_at(s, row_of(first, i), number, min(k, p.units - 1u))]; }
  return v;
}

fn share(slot: u32, u: u32, rows: vec4<f32>) {
  if (PERSISTENT) { x[slot * UNITS + u] = rows; }
}

// Sum over the units k of a gate: shared gradient times weight.
fn product(s: u32, first: u32, slot: u32, number: u32, gate: u32, quad: u32) -> mat4x4<f32> {
  var sum = mat4x4<f32>();
  for (var k = 0u; k < UNITS; k += 4u) {  // by four: software Vulkan counts the passes
    for (var j = 0u; j < 4u; j++) {
      let a = w[p.w / 4u + (gate * UNITS + k + j) * (WIDTH / 4u) + quad];
      let v = shared_at(s, first, slot, number, k + j);
      sum += mat4x4<f32>(a * v.x, a * v.y, a * v.z, a * v.w);
    }
  }
  return sum;
}

// Add a sum to what waits in dh.
fn add_to_dh(first: u32, quad: u32, sum: mat4x4<f32>) {
  let u = quad * 4u;
  for (var i = 0u; i < 4u && first + i < p.batch; i++) {
    for (var j = 0u; j < min(4u, p.width - u); j++) {
      dh[p.dh + (first + i) * p.width + u + j] += sum[i][j];
    }
  }
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) me: u32) {
  let first = group.x * 4u;
  if (PERSISTENT) {
    for (var step = p.end; step > p.begin; step--) {
      for (var phase = 0u; phase < PHASES; phase++) {
        for (var quad = me; quad < MOST; quad += SIZE) { retreat(step - 1u, first, quad, phase); }
        workgroupBarrier();
      }
    }
  } else {
    let quad = group.y * SIZE + me;
    if (quad < MOST) { retreat(p.begin, first, quad, p.phase); }
  }
}
