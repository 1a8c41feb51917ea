fn start() -> A { return A(1); }
fn enter(x: T) -> A { return A(x); }
fn join(a: A, b: A) -> A { return a * b; }
