fn start() -> A { return 1u; }
fn enter(x: T) -> A { return select(0u, 1u, truth(x)); }
fn join(a: A, b: A) -> A { return a & b; }
