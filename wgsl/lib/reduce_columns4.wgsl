// lib/reduce.wgsl where neighbouring outputs lie side by side: four of them an invocation.
// Sizes and strides count groups of four.
@group(0) @binding(1) var<storage, read> x: array<vec4<E>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<S>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.count) {
    let at = part(i);
    let base = kept(at.x);
    var acc = vec4<A>(start());
    for (var j = at.y; j < p.length; j += p.chunks) {
      let v = vec4<T>(x[base + folded(j)]);
      acc = vec4<A>(join(acc.x, enter(v.x)), join(acc.y, enter(v.y)),
                    join(acc.z, enter(v.z)), join(acc.w, enter(v.w)));
    }
    y[i] = vec4<S>(acc);
  }
}
