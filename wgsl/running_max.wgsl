// state.y: the largest so far, NaN kept; the rest is what lib/scan.wgsl asks for.
// cost: 3 operations, 4 bytes read and 4 written an element (more where rows are cut); 64 invocations, no shared memory
fn nothing() -> T { return lowest(); }
fn step(state: vec2<T>, a: T, b: T) -> vec2<T> {
  return vec2<T>(state.x, max_of(state.y, b));
}
