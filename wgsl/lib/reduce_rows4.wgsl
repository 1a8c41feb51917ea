// lib/reduce.wgsl where the folded elements are contiguous: four of them a load.
// Sizes and strides count groups of four.
@group(0) @binding(1) var<storage, read> x: array<vec4<E>>;
@group(0) @binding(2) var<storage, read_write> y: array<S>;
alias P = A;

fn walked(base: u32, first: u32, step: u32) -> P {
  var acc = vec4<A>(start());
  for (var j = first; j < p.length; j += step) {
    let v = vec4<T>(x[base + j]);
    acc = vec4<A>(join(acc.x, enter(v.x)), join(acc.y, enter(v.y)),
                  join(acc.z, enter(v.z)), join(acc.w, enter(v.w)));
  }
  return join(join(acc.x, acc.y), join(acc.z, acc.w));
}

fn joined(a: P, b: P) -> P {
  return join(a, b);
}

fn put(at: u32, acc: P) {
  y[at] = S(acc);
}
