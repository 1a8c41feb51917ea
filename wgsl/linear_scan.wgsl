// state: the product of the factors so far, and the value.
// cost: 2 operations, 8 bytes read and 4 written an element (more where rows are cut); 64 invocations, no shared memory
fn nothing() -> T { return T(0); }
fn step(state: vec2<T>, a: T, b: T) -> vec2<T> {
  return vec2<T>(state.x * a, a * state.y + b);
}
