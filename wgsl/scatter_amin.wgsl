// Smallest by index, NaN kept: lib/scatter.wgsl
fn join(acc: T, v: T) -> T {
  return min_of(acc, v);
}
