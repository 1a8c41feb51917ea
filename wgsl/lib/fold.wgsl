// The parameter slot of a reduction. Output o keeps some dimensions, the others are folded;
// chunk s of an output takes elements s, s + chunks, ... so that neighbours read neighbours.
struct Params {
  offset: u32,
  count: u32,                 // invocations: outputs * chunks
  n: u32,                     // outputs
  chunks: u32,
  length: u32,                // folded elements of one output
  keep_rank: u32,
  fold_rank: u32,
  fold_inner: u32,            // 1 where chunks vary fastest from one invocation to the next
  dims: array<vec4<u32>, 8>,  // size and stride: the kept dimensions, then the folded ones
  w: array<vec4<u32>, 6>,     // of an expression that is read in place of memory: webgpu/prologue.py
}
@group(0) @binding(0) var<uniform> p: Params;

// The flat index of an invocation; more than 65,535 workgroups lie in rows of w.x.
fn flat(g: vec3<u32>, w: vec3<u32>) -> u32 {
  return g.x + g.y * w.x * 64u;
}

// Invocation i as (output, chunk).
fn part(i: u32) -> vec2<u32> {
  if (p.chunks == 1u) { return vec2<u32>(i, 0u); }
  let inner = select(p.n, p.chunks, p.fold_inner == 1u);
  let high = i / inner;
  let low = i - high * inner;
  return select(vec2<u32>(low, high), vec2<u32>(high, low), p.fold_inner == 1u);
}

fn walk(i: u32, first: u32, rank: u32) -> u32 {
  var rest = i;
  var at = 0u;
  for (var d = rank; d > 1u; d--) {
    let dim = p.dims[first + d - 1u];
    let next = rest / dim.x;
    at += (rest - next * dim.x) * dim.y;
    rest = next;
  }
  return at + select(0u, rest * p.dims[first].y, rank > 0u);
}

fn kept(o: u32) -> u32 {
  return p.offset + walk(o, 0u, p.keep_rank);
}

fn folded(j: u32) -> u32 {
  if (p.fold_rank == 1u) { return j * p.dims[p.keep_rank].y; }
  return walk(j, p.keep_rank, p.fold_rank);
}
