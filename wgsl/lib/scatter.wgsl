// y = x, and along one axis y[.., index[.., t, ..], ..] = join(that, src[.., t, ..]).
// Each element of y has its own invocation, which looks through the axis in order: no float
// atomics, and the result repeats to the bit.
@group(0) @binding(2) var<storage, read> index: array<i32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = g.x + g.y * w.x * 64u;
  let live = i < p.n;
  let place = place_of(i, live);
  let at = place.at;
  var acc = T(x[at.x]);
  for (var t = 0u; t < place.length; t++) {
    if (u32(index[at.y + t * p.step.x]) == place.here) {
      acc = join(acc, T(src[at.z + t * p.step.y]));
    }
  }
  if (live) { y[i] = narrow(acc); }
}
