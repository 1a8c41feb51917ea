// Sums by index: lib/scatter.wgsl
fn join(acc: T, v: T) -> T {
  return acc + v;
}
