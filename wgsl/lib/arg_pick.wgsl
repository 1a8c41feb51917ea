// The best of the candidates that lib/arg.wgsl left in c, `chunks` of them an output.
@group(0) @binding(1) var<storage, read> x: array<E>;
@group(0) @binding(2) var<storage, read> c: array<i32>;
@group(0) @binding(3) var<storage, read_write> y: array<i32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.n) {
    let base = kept(i);
    let first = i * p.chunks;
    var where_best = u32(c[first]);
    var best = T(x[base + folded(where_best)]);
    for (var k = first + 1u; k < first + p.chunks; k++) {
      let j = u32(c[k]);
      let v = T(x[base + folded(j)]);
      if (better(v, j, best, where_best)) {
        best = v;
        where_best = j;
      }
    }
    y[i] = i32(where_best);
  }
}
