// y = log(sum of exp(x)) - (1 - s) x[t] - s mean(x) of every row, from x less the row's maximum; stats keeps that
// maximum and the logarithm of the sum.
// cost: about 18 operations an element, 4 bytes read twice, 16 a row; 1 to 256 invocations a row, 4 bytes shared each
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> t: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<storage, read_write> stats: array<vec2<f32>>;

@compute @workgroup_size(SIZE)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) me: u32) {
  let row = row_of(g, group, groups);
  let live = row < p.rows;
  let at = p.x + select(0u, row, live) * p.classes;
  let lane = lane_of(me);
  var most = x[at];
  for (var j = lane; j < p.classes; j += LANES) { most = max_of(most, x[at + j]); }
  let top = all_max(most, me);
  var sum = 0.0;
  var plain = 0.0;
  for (var j = lane; j < p.classes; j += LANES) {
    let d = x[at + j] - top;
    sum += exp_safe(d);
    plain += d;
  }
  let level = log_safe(all_sum(sum, me));
  let mean = all_sum(plain, me) / f32(p.classes);
  if (live && lane == 0u) {
    var loss = level - (x[at + t[p.t + row]] - top) * (1.0 - p.smoothing);
    if (p.smoothing > 0.0) { loss -= p.smoothing * mean; }
    y[row] = loss;
    stats[row] = vec2<f32>(top, level);
  }
}
