// One chunk of one output an invocation, over any strides. No barriers, no atomics: the order
// of the additions depends on the shape alone, so a result repeats to the bit.
@group(0) @binding(1) var<storage, read> x: array<E>;
@group(0) @binding(2) var<storage, read_write> y: array<S>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.count) {
    let at = part(i);
    let base = kept(at.x);
    var acc = start();
    for (var j = at.y; j < p.length; j += p.chunks) {
      acc = join(acc, enter(T(x[base + folded(j)])));
    }
    y[i] = S(acc);
  }
}
