// T = i32: what the op files ask of a type that differs from type to type.
fn lowest() -> T { return -2147483647 - 1; }
fn highest() -> T { return 2147483647; }

fn truth(x: T) -> bool { return x != 0; }
fn differs(a: T, b: T) -> bool { return a != b; }
fn is_nan(x: T) -> bool { return false; }
fn is_inf(x: T) -> bool { return false; }
fn negate(x: T) -> T { return -x; }
fn magnitude(x: T) -> T { return abs(x); }
fn sign_of(x: T) -> T { return sign(x); }
fn floor_of(x: T) -> T { return x; }
fn ceil_of(x: T) -> T { return x; }
fn round_of(x: T) -> T { return x; }
fn trunc_of(x: T) -> T { return x; }
fn invert(x: T) -> T { return ~x; }
fn max_of(a: T, b: T) -> T { return max(a, b); }
fn min_of(a: T, b: T) -> T { return min(a, b); }
// The low byte, as a cast to uint8 keeps it.
fn to_byte(x: T) -> u32 { return bitcast<u32>(x) & 255u; }

// Division by zero gives 0 on every driver; WGSL's own rule (a / 0 = a) is not kept by all.
fn trunc_div(a: T, b: T) -> T {
  // -2^31 / -1 overflows and traps on some CPUs: negation wraps instead.
  if (b == -1) { return -a; }
  return select(a / select(b, 1, b == 0), 0, b == 0);
}

fn trunc_mod(a: T, b: T) -> T {
  return select(a - trunc_div(a, b) * b, 0, b == 0);
}

fn floor_div(a: T, b: T) -> T {
  let q = trunc_div(a, b);
  let inexact = q * b != a && b != 0;
  return q - select(0, 1, inexact && ((a < 0) != (b < 0)));
}

fn floor_mod(a: T, b: T) -> T {
  let r = trunc_mod(a, b);
  return r + select(0, b, r != 0 && ((r < 0) != (b < 0)));
}

// By squaring, wrapping; a negative exponent leaves 0 except for bases 1 and -1.
fn power(a: T, b: T) -> T {
  if (b < 0) {
    if (a == 1) { return 1; }
    if (a == -1) { return select(1, -1, (b & 1) == 1); }
    return 0;
  }
  var y: T = 1;
  var base = a;
  for (var e = bitcast<u32>(b); e > 0u; e >>= 1u) {
    if ((e & 1u) == 1u) { y *= base; }
    base *= base;
  }
  return y;
}
