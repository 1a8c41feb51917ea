// state.y: the largest so far, NaN kept; the rest is what lib/scan.wgsl asks for.
fn nothing() -> T { return lowest(); }
fn step(state: vec2<T>, a: T, b: T) -> vec2<T> {
  return vec2<T>(state.x, max_of(state.y, b));
}
