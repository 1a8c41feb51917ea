// cost: 1 operation, 16 bytes an element (0 in a fused kernel); 64 invocations, no shared memory
fn op(c: u32, a: T, b: T) -> R {
  return select(b, a, c != 0u);
}
