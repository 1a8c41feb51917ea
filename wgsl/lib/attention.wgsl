// What the attention kernels share: parameters, scores, dropout. Formulas: autograd/ops/attention.py.
// Numbers are read four at a time: offsets, rows and heads start at multiples of four. Two dimensions of heads.
struct Walk {
  offset: u32,  // of the first four, in fours
  outer: u32,   // strides, in fours
  inner: u32,
  row: u32,
}
struct Params {
  inner: u32,   // heads of the inner dimension
  length: u32,  // rows of q
  columns: u32, // rows of k
  rows: u32,    // invocations: rows of this kernel, all heads together
  scale: f32,
  causal: u32,
  seed: u32,
  limit: u32,   // dropout drops where the bits are below
  factor: f32,  // what it multiplies the rest by
  stats: u32,   // where (lse, D) of the rows begin behind dq, in fours
  lse: u32,     // where lse begins
  first: u32,   // row of this dispatch
  mask: vec4<u32>,      // strides of outer and inner heads, rows and columns
  begin: vec2<u32>,     // of the mask, and the number of the first head
  unused: vec2<u32>,
  q: Walk,
  k: Walk,
  v: Walk,
  fourth: Walk, // y of the forward kernel; dy, y and dq, or dy, dk and dv, of the backward ones
  fifth: Walk,
  sixth: Walk,
}
@group(0) @binding(0) var<uniform> p: Params;

fn start_of(walk: Walk, head: u32, row: u32) -> u32 {
  return walk.offset + (head / p.inner) * walk.outer + (head % p.inner) * walk.inner + row * walk.row;
}

// The row of an invocation; more than 65,535 workgroups lie in rows of w.x.
fn row_of(g: vec3<u32>, w: vec3<u32>) -> u32 {
  return p.first + g.x + g.y * w.x * 64u;
}

fn mix(x: u32) -> u32 {
  var y = x;
  y ^= y >> 16u;
  y *= 0x85ebca6bu;
  y ^= y >> 13u;
  y *= 0xc2b2ae35u;
  y ^= y >> 16u;
  return y;
}

// What dropout multiplies the probability by: a function of seed and place, so that nothing is stored.
fn dropped(head: u32, i: u32, j: u32) -> f32 {
  if (!DROPS) { return 1.0; }
  let line = mix(((p.begin.y + head) * p.length + i) ^ p.seed);
  return select(p.factor, 0.0, mix(line + j * 0x9e3779b9u) < p.limit);
}

// A causal mask is a shorter walk: query i sees the keys up to i, key j is seen by the queries from j on.
fn columns_of(i: u32) -> u32 {
  return select(p.columns, min(p.columns, i + 1u), p.causal == 1u);
}

fn first_of(j: u32) -> u32 {
  return select(0u, j, p.causal == 1u);
}

// The score of query i and key j from their product; below every number where j may not be seen.
fn scored(product: f32, head: u32, i: u32, j: u32) -> f32 {
  let at = (head / p.inner) * p.mask.x + (head % p.inner) * p.mask.y + i * p.mask.z + j * p.mask.w;
  return masked(product * p.scale, p.begin.x + at);
}

// Below any score, and finite: an infinity cannot be written.
const HIDDEN: f32 = -3.4e38;

fn is_hidden(s: f32) -> bool {
  return s <= HIDDEN;
}
