// lib/scatter.wgsl by way of a sorted index: each element of y finds its run of pairs (key, place) by bisection and joins
// in order, so that the result repeats to the bit and costs no walk over the whole index.
@group(0) @binding(2) var<storage, read> pairs: array<vec2<u32>>;

// The first pair of a row whose key is not below `key`.
fn lower_bound(row: u32, key: u32) -> u32 {
  var low = 0u;
  var high = p.length;
  while (low < high) {
    let middle = (low + high) / 2u;
    if (pairs[row + middle].x < key) {
      low = middle + 1u;
    } else {
      high = middle;
    }
  }
  return low;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = g.x + g.y * w.x * 64u;
  let live = i < p.n;
  let place = place_of(i, live);
  let at = place.at;
  var acc = T(x[at.x]);
  if (place.length > 0u) {
    for (var t = lower_bound(at.y, place.here); t < place.length; t++) {
      let pair = pairs[at.y + t];
      if (pair.x != place.here) { break; }
      acc = join(acc, T(src[at.z + pair.y * p.step.y]));
    }
  }
  if (live) { y[i] = narrow(acc); }
}
