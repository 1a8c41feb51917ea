// Is x, at position i, a better maximum than best, at position j? A NaN is; so is the first.
// cost: 4 operations and 4 bytes an element, 8 a chunk; 64 invocations, no shared memory
fn better(x: T, i: u32, best: T, j: u32) -> bool {
  if (is_nan(x) != is_nan(best)) { return is_nan(x); }
  return x > best || ((x == best || is_nan(x)) && i < j);
}
