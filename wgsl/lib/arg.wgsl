// The position of the extreme of one chunk of one output an invocation.
@group(0) @binding(1) var<storage, read> x: array<E>;
@group(0) @binding(2) var<storage, read_write> y: array<i32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.count) {
    let at = part(i);
    let base = kept(at.x);
    var where_best = at.y;
    var best = T(x[base + folded(at.y)]);
    for (var j = at.y + p.chunks; j < p.length; j += p.chunks) {
      let v = T(x[base + folded(j)]);
      if (better(v, j, best, where_best)) {
        best = v;
        where_best = j;
      }
    }
    y[i] = i32(where_best);
  }
}
