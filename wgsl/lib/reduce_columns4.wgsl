// lib/reduce.wgsl where neighbouring outputs lie side by side: four of them together.
// Sizes and strides count groups of four.
@group(0) @binding(1) var<storage, read> x: array<vec4<E>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<S>>;
alias P = vec4<A>;

fn walked(base: u32, first: u32, step: u32) -> P {
  var acc = vec4<A>(start());
  for (var j = first; j < p.length; j += step) {
    let v = vec4<T>(x[base + folded(j)]);
    acc = joined(acc, vec4<A>(enter(v.x), enter(v.y), enter(v.z), enter(v.w)));
  }
  return acc;
}

fn joined(a: P, b: P) -> P {
  return vec4<A>(join(a.x, b.x), join(a.y, b.y), join(a.z, b.z), join(a.w, b.w));
}

fn put(at: u32, acc: P) {
  y[at] = vec4<S>(acc);
}
