// Rows over any strides: their maximum, their sum of exponentials, their outputs.
// a is x and b is y; scalar.x and .y hold their strides along the row, offset.w the row's length.
@group(0) @binding(1) var<storage, read> x: array<E>;
@group(0) @binding(2) var<storage, read_write> y: array<E>;

@compute @workgroup_size(SIZE)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) w: vec3<u32>, @builtin(local_invocation_index) me: u32) {
  let row = row_of(g, group, w);
  let live = row < p.n;
  let at = locate(select(0u, row, live));
  let lane = lane_of(me);
  let length = select(0u, p.offset.w, live);
  var most = f32(x[at.x]);
  for (var j = lane; j < length; j += LANES) {
    most = max_of(most, f32(x[at.x + j * p.scalar.x]));
  }
  let highest = all_max(most, me);
  // A row of -inf gives -inf - -inf, which is the NaN that it should.
  var part = 0.0;
  for (var j = lane; j < length; j += LANES) {
    part += exp_safe(f32(x[at.x + j * p.scalar.x]) - highest);
  }
  let sum = all_sum(part, me);
  for (var j = lane; j < length; j += LANES) {
    y[at.y + j * p.scalar.y] = E(op(f32(x[at.x + j * p.scalar.x]) - highest, sum));
  }
}
