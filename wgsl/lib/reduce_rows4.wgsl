// lib/reduce.wgsl where the folded elements are contiguous: four of them a load.
// Sizes and strides count groups of four.
@group(0) @binding(1) var<storage, read> x: array<vec4<E>>;
@group(0) @binding(2) var<storage, read_write> y: array<S>;
alias P = A;

// Sums of sums of 16: what rounding loses grows with the longer of the two, not with the number of elements.
fn walked(base: u32, first: u32, step: u32) -> P {
  var acc = vec4<A>(start());
  var j = first;
  while (j < p.length) {
    var part = vec4<A>(start());
    let stop = min(j + 16u * step, p.length);
    for (; j < stop; j += step) {
      let v = vec4<T>(x[base + j]);
      part = vec4<A>(join(part.x, enter(v.x)), join(part.y, enter(v.y)),
                     join(part.z, enter(v.z)), join(part.w, enter(v.w)));
    }
    acc = vec4<A>(join(acc.x, part.x), join(acc.y, part.y), join(acc.z, part.z), join(acc.w, part.w));
  }
  return join(join(acc.x, acc.y), join(acc.z, acc.w));
}

fn joined(a: P, b: P) -> P {
  return join(a, b);
}

fn put(at: u32, acc: P) {
  y[at] = S(acc);
}
