fn start() -> A { return lowest(); }
fn enter(x: T) -> A { return A(x); }
fn join(a: A, b: A) -> A { return max_of(a, b); }
