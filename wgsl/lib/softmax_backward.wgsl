// Rows over any strides. a is y, b is dy, c is dx; scalar.x, .y and .z hold their strides along the row, offset.w the
// row's length.
@group(0) @binding(1) var<storage, read> y: array<E>;
@group(0) @binding(2) var<storage, read> dy: array<E>;
@group(0) @binding(3) var<storage, read_write> dx: array<E>;

@compute @workgroup_size(SIZE)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) w: vec3<u32>, @builtin(local_invocation_index) me: u32) {
  let row = row_of(g, group, w);
  let live = row < p.n;
  let at = locate(select(0u, row, live));
  let lane = lane_of(me);
  let step = p.scalar.xyz;
  let length = select(0u, p.offset.w, live);
  var part = 0.0;
  for (var j = lane; j < length; j += LANES) {
    part += weigh(f32(y[at.x + j * step.x]), f32(dy[at.y + j * step.y]));
  }
  let sum = all_sum(part, me);
  for (var j = lane; j < length; j += LANES) {
    let z = op(f32(y[at.x + j * step.x]), f32(dy[at.y + j * step.y]), sum);
    dx[at.z + j * step.z] = E(z);
  }
}
