// What a reduction over any strides adds up and stores: one element at a time. No atomics: the order of the additions
// depends on the shape and the kernel alone, so a result repeats to the bit.
@group(0) @binding(1) var<storage, read> x: array<E>;
@group(0) @binding(2) var<storage, read_write> y: array<S>;
alias P = A;

// Sums of sums of 16: what rounding loses grows with the longer of the two, not with the number of elements.
fn walked(base: u32, first: u32, step: u32) -> P {
  var acc = start();
  var j = first;
  while (j < p.length) {
    var part = start();
    let stop = min(j + 16u * step, p.length);
    for (; j < stop; j += step) {
      part = join(part, enter(T(x[base + folded(j)])));
    }
    acc = join(acc, part);
  }
  return acc;
}

fn joined(a: P, b: P) -> P {
  return join(a, b);
}

fn put(at: u32, acc: P) {
  y[at] = S(acc);
}
