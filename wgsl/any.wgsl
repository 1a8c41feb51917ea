// cost: 1 operation, 4 bytes an element and 4 a chunk; 64 invocations, or a tree of 256 with 1 to 4 KiB shared
fn start() -> A { return 0u; }
fn enter(x: T) -> A { return select(0u, 1u, truth(x)); }
fn join(a: A, b: A) -> A { return a | b; }
