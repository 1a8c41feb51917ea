// Products by index: lib/scatter.wgsl
// cost: n operations, 4 n bytes an element for n of the index (sorted: log2(n), 8 log2(n)); 64 invocations, no shared memory
fn join(acc: T, v: T) -> T {
  return acc * v;
}
