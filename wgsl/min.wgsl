fn start() -> A { return highest(); }
fn enter(x: T) -> A { return A(x); }
fn join(a: A, b: A) -> A { return min_of(a, b); }
