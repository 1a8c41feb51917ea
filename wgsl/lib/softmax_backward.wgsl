// A row an invocation, over any strides. a is y, b is dy, c is dx; scalar.x, .y and .z hold
// their strides along the row, offset.w the row's length.
@group(0) @binding(1) var<storage, read> y: array<E>;
@group(0) @binding(2) var<storage, read> dy: array<E>;
@group(0) @binding(3) var<storage, read_write> dx: array<E>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.n) {
    let at = locate(i);
    let step = p.scalar.xyz;
    var sum = 0.0;
    for (var j = 0u; j < p.offset.w; j++) {
      sum += weigh(f32(y[at.x + j * step.x]), f32(dy[at.y + j * step.y]));
    }
    for (var j = 0u; j < p.offset.w; j++) {
      let z = op(f32(y[at.x + j * step.x]), f32(dy[at.y + j * step.y]), sum);
      dx[at.z + j * step.z] = E(z);
    }
  }
}
