// T = f32: what the op files ask of a type that differs from type to type.
// a != b is false for NaN (it becomes an ordered comparison): ask for equality.
fn differs(a: T, b: T) -> bool { return !(a == b); }
fn truth(x: T) -> bool { return !(x == 0.0); }
fn lowest() -> T { return -infinity(); }
fn highest() -> T { return infinity(); }
fn negate(x: T) -> T { return -x; }
fn magnitude(x: T) -> T { return abs(x); }
fn sign_of(x: T) -> T { return select(sign(x), x, is_nan(x)); }
fn floor_of(x: T) -> T { return floor(x); }
fn ceil_of(x: T) -> T { return ceil(x); }
fn round_of(x: T) -> T { return round(x); }
fn trunc_of(x: T) -> T { return trunc(x); }
// Casts to uint8 go by way of i32, so that negative values wrap as NumPy's do.
fn to_byte(x: T) -> u32 { return bitcast<u32>(i32(x)) & 255u; }

// max() may drop a NaN: test for it.
fn max_of(a: T, b: T) -> T {
  return select(select(b, a, a > b || is_nan(a)), b, is_nan(b));
}

fn min_of(a: T, b: T) -> T {
  return select(select(b, a, a < b || is_nan(a)), b, is_nan(b));
}

// The rest of a / b with the sign of a, exact: a - b * trunc(a / b) is not.
fn trunc_mod(a: T, b: T) -> T {
  if (is_nan(a) || is_nan(b) || is_inf(a) || b == 0.0) { return not_a_number(); }
  let y = abs(b);
  var r = abs(a);
  for (var i = 0; i < 300 && r >= y; i++) {
    // b times the power of two that brings it just under r: the difference is exact.
    let gap = i32(bitcast<u32>(r) >> 23u) - i32(bitcast<u32>(y) >> 23u);
    let step = scale_by_power(y, gap);
    r -= select(step, scale_by_power(y, gap - 1), step > r);
  }
  return copy_sign(r, a);
}

fn floor_mod(a: T, b: T) -> T {
  let r = trunc_mod(a, b);
  if (r == 0.0) { return copy_sign(0.0, b); }
  return select(r, r + b, (r < 0.0) != (b < 0.0));
}

fn floor_div(a: T, b: T) -> T {
  if (b == 0.0 || is_nan(a) || is_nan(b) || is_inf(a)) {
    return select(a / b, not_a_number(), is_inf(a) && b != 0.0);
  }
  // Exact but for one rounding: the rest is taken off before the division.
  let y = round((a - floor_mod(a, b)) / b);
  return select(y, select(0.0, -1.0, a != 0.0 && (a < 0.0) != (b < 0.0)), is_inf(b));
}

// x^n for a whole n >= 0, by squaring.
fn whole_power(x: f32, n: u32) -> f32 {
  var y = 1.0;
  var base = x;
  for (var e = n; e > 0u; e >>= 1u) {
    if ((e & 1u) == 1u) { y *= base; }
    base *= base;
  }
  return y;
}

// a^b for a > 0: 2^(b log2 a), whose whole part is kept apart so that it costs no bits.
fn positive_power(a: f32, b: f32) -> f32 {
  if (a == 0.0) { return select(0.0, infinity(), b < 0.0); }
  if (is_inf(a)) { return select(infinity(), 0.0, b < 0.0); }
  let v = log_split(a);
  let f = v.x * 1.442695;
  let whole = b * (v.y + f);
  if (abs(whole) > 160.0) { return select(0.0, infinity(), whole > 0.0); }
  let n = round(whole);
  let hi = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
  let r = ((hi * v.y - n) + (b - hi) * v.y) + b * f;
  return scale_by_power(exp2_safe(r), i32(n));
}

// C's pow: 1 for b = 0 and for a = 1 whatever the other is, NaN for a fraction of a negative.
fn power(a: T, b: T) -> T {
  if (b == 0.0 || a == 1.0) { return 1.0; }
  if (is_nan(a) || is_nan(b)) { return not_a_number(); }
  let size = abs(b);
  if (is_inf(b)) {
    if (abs(a) == 1.0) { return 1.0; }
    return select(0.0, infinity(), (abs(a) > 1.0) == (b > 0.0));
  }
  if (size <= 16.0 && floor(b) == b && a != 0.0) {
    let y = whole_power(a, u32(size));
    return select(y, 1.0 / y, b < 0.0);
  }
  let whole = floor(b) == b;
  let y = positive_power(abs(a), b);
  let odd = whole && size < 16777216.0 && (u32(size) & 1u) == 1u;
  let negative = (bitcast<u32>(a) >> 31u) == 1u;
  if (negative && !whole && a != 0.0 && !is_inf(a)) { return not_a_number(); }
  return select(y, -y, negative && odd);
}
