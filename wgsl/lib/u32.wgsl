// T = u32 (bool and uint8): what the op files ask of a type that differs from type to type.
fn lowest() -> T { return 0u; }
fn highest() -> T { return 255u; }

fn truth(x: T) -> bool { return x != 0u; }
fn differs(a: T, b: T) -> bool { return a != b; }
fn is_nan(x: T) -> bool { return false; }
fn is_inf(x: T) -> bool { return false; }
fn negate(x: T) -> T { return 0u - x; }
fn magnitude(x: T) -> T { return x; }
fn sign_of(x: T) -> T { return min(x, 1u); }
fn floor_of(x: T) -> T { return x; }
fn ceil_of(x: T) -> T { return x; }
fn round_of(x: T) -> T { return x; }
fn trunc_of(x: T) -> T { return x; }
fn invert(x: T) -> T { return ~x; }
fn max_of(a: T, b: T) -> T { return max(a, b); }
fn min_of(a: T, b: T) -> T { return min(a, b); }
fn to_byte(x: T) -> u32 { return x & 255u; }

// Division by zero gives 0 on every driver.
fn floor_div(a: T, b: T) -> T {
  return select(a / select(b, 1u, b == 0u), 0u, b == 0u);
}

fn trunc_mod(a: T, b: T) -> T {
  return select(a - floor_div(a, b) * b, 0u, b == 0u);
}

fn floor_mod(a: T, b: T) -> T { return trunc_mod(a, b); }

fn power(a: T, b: T) -> T {
  var y: T = 1u;
  var base = a;
  for (var e = b; e > 0u; e >>= 1u) {
    if ((e & 1u) == 1u) { y *= base; }
    base *= base;
  }
  return y;
}
