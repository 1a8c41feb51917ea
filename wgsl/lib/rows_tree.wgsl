// A row a workgroup of SIZE (a power of two): its lanes take every SIZE-th number, and join what they found in a tree
// of fixed order, so that results repeat to the bit. 4 SIZE bytes of workgroup memory, 2 log2(SIZE) barriers a sum.
const LANES = SIZE;
var<workgroup> pool: array<f32, SIZE>;

fn row_of(g: vec3<u32>, group: vec3<u32>, w: vec3<u32>) -> u32 {
  return group.x + group.y * w.x;
}

fn lane_of(me: u32) -> u32 {
  return me;
}

fn all_sum(v: f32, me: u32) -> f32 {
  pool[me] = v;
  workgroupBarrier();
  for (var half = SIZE / 2u; half > 0u; half /= 2u) {
    if (me < half) { pool[me] += pool[me + half]; }
    workgroupBarrier();
  }
  let sum = pool[0];
  workgroupBarrier();  // the next one writes where this one is read
  return sum;
}

fn all_max(v: f32, me: u32) -> f32 {
  pool[me] = v;
  workgroupBarrier();
  for (var half = SIZE / 2u; half > 0u; half /= 2u) {
    if (me < half) { pool[me] = max_of(pool[me], pool[me + half]); }
    workgroupBarrier();
  }
  let most = pool[0];
  workgroupBarrier();
  return most;
}
