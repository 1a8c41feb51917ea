// What a reduction over any strides adds up and stores: one element at a time. No atomics: the order of the additions
// depends on the shape and the kernel alone, so a result repeats to the bit.
@group(0) @binding(1) var<storage, read> x: array<E>;
@group(0) @binding(2) var<storage, read_write> y: array<S>;
alias P = A;

fn walked(base: u32, first: u32, step: u32) -> P {
  var acc = start();
  for (var j = first; j < p.length; j += step) {
    acc = join(acc, enter(T(x[base + folded(j)])));
  }
  return acc;
}

fn joined(a: P, b: P) -> P {
  return join(a, b);
}

fn put(at: u32, acc: P) {
  y[at] = S(acc);
}
