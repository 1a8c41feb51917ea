// y = (x - mean) / sqrt(var + eps) * w + b for every row, and (mean, 1 / sqrt(var + eps)) of it; var is the mean square
// of x - mean. Three walks over the row, which is in cache after the first.
// cost: 8 operations an element, 4 bytes read thrice, 4 written, 8 a row; 1 to 256 invocations a row, 4 bytes shared each
@group(0) @binding(1) var<storage, read> x: array<V>;
@group(0) @binding(2) var<storage, read> w: array<V>;
@group(0) @binding(3) var<storage, read> b: array<V>;
@group(0) @binding(4) var<storage, read_write> y: array<V>;
@group(0) @binding(5) var<storage, read_write> stats: array<vec2<f32>>;

@compute @workgroup_size(SIZE)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) me: u32) {
  let row = row_of(g, group, groups);
  let live = row < p.rows;
  let start = select(0u, row, live) * p.length;
  let lane = lane_of(me);
  let at = p.places.x + start;
  var sum = V(0.0);
  for (var j = lane; j < p.length; j += LANES) { sum += x[at + j]; }
  let mean = all_sum(total(sum), me) * p.scale * p.centred;
  var squares = V(0.0);
  for (var j = lane; j < p.length; j += LANES) {
    let c = x[at + j] - mean;
    squares += c * c;
  }
  let factor = 1.0 / sqrt(all_sum(total(squares), me) * p.scale + p.eps);
  if (!live) { return; }
  for (var j = lane; j < p.length; j += LANES) {
    var z = (x[at + j] - mean) * factor;
    if (WEIGHT) { z *= w[p.places.y + j]; }
    if (BIAS) { z += b[p.places.z + j]; }
    y[start + j] = z;
  }
  if (lane == 0u) { stats[row] = vec2<f32>(mean, factor); }
}
