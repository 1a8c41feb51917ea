// One chunk of COLUMNS neighbouring outputs a workgroup of 256: 256 / COLUMNS invocations share an output, and join
// what they found in a tree of fixed order. 1 KiB of workgroup memory, four of reduce_columns4; at most nine barriers.
const LANES = 256u / COLUMNS;
var<workgroup> pool: array<P, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>,
        @builtin(local_invocation_index) me: u32) {
  let block = group.x + group.y * w.x;
  let chunk = block % p.chunks;
  let output = (block / p.chunks) * COLUMNS + me % COLUMNS;
  let lane = me / COLUMNS;
  let live = output < p.n;
  pool[me] = walked(kept(select(0u, output, live)), chunk + lane * p.chunks, LANES * p.chunks);
  workgroupBarrier();
  for (var half = LANES / 2u; half > 0u; half /= 2u) {
    if (lane < half) { pool[me] = joined(pool[me], pool[me + half * COLUMNS]); }
    workgroupBarrier();
  }
  if (live && lane == 0u) {
    put(select(chunk * p.n + output, output * p.chunks + chunk, p.fold_inner == 1u), pool[me]);
  }
}
