// state: the product of the factors so far, and the value.
fn nothing() -> T { return T(0); }
fn step(state: vec2<T>, a: T, b: T) -> vec2<T> {
  return vec2<T>(state.x * a, a * state.y + b);
}
