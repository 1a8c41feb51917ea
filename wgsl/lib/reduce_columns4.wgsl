// lib/reduce.wgsl where neighbouring outputs lie side by side: four of them together.
// Sizes and strides count groups of four.
@group(0) @binding(1) var<storage, read> x: array<vec4<E>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<S>>;
alias P = vec4<A>;

// Sums of sums of 16: what rounding loses grows with the longer of the two, not with the number of elements.
fn walked(base: u32, first: u32, step: u32) -> P {
  var acc = vec4<A>(start());
  var j = first;
  while (j < p.length) {
    var part = vec4<A>(start());
    let stop = min(j + 16u * step, p.length);
    for (; j < stop; j += step) {
      let v = vec4<T>(x[base + folded(j)]);
      part = joined(part, vec4<A>(enter(v.x), enter(v.y), enter(v.z), enter(v.w)));
    }
    acc = joined(acc, part);
  }
  return acc;
}

fn joined(a: P, b: P) -> P {
  return vec4<A>(join(a.x, b.x), join(a.y, b.y), join(a.z, b.z), join(a.w, b.w));
}

fn put(at: u32, acc: P) {
  y[at] = vec4<S>(acc);
}
