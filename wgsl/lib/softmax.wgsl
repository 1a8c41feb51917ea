// A row an invocation, over any strides: its maximum, its sum of exponentials, its outputs.
// a is x and b is y; scalar.x and .y hold their strides along the row, offset.w the row's length.
@group(0) @binding(1) var<storage, read> x: array<E>;
@group(0) @binding(2) var<storage, read_write> y: array<E>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.n) {
    let at = locate(i);
    let length = p.offset.w;
    var highest = f32(x[at.x]);
    for (var j = 1u; j < length; j++) {
      highest = max_of(highest, f32(x[at.x + j * p.scalar.x]));
    }
    // A row of -inf gives -inf - -inf, which is the NaN that it should.
    var sum = 0.0;
    for (var j = 0u; j < length; j++) {
      sum += exp_safe(f32(x[at.x + j * p.scalar.x]) - highest);
    }
    for (var j = 0u; j < length; j++) {
      y[at.y + j * p.scalar.y] = E(op(f32(x[at.x + j * p.scalar.x]) - highest, sum));
    }
  }
}
