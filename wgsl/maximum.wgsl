// cost: 3 operations, 12 bytes an element (0 in a fused kernel); 64 invocations, no shared memory
fn op(a: T, b: T) -> R {
  return max_of(a, b);
}
