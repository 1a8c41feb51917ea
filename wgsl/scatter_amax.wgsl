// Largest by index, NaN kept: lib/scatter.wgsl
fn join(acc: T, v: T) -> T {
  return max_of(acc, v);
}
