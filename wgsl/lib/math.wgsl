// Safe mathematics on f32. Vulkan allows the built-ins errors from 3 ulp (exp) to 2^-11 (sin),
// and drivers differ on NaN and infinity; these agree with NumPy to about 2e-6 everywhere.
// Drivers may also rewrite (a + b) - a to b: nothing here relies on a cancellation of that kind.

const LN2: f32 = 0.69314718;
const HALF_PI: f32 = 1.5707964;

// `x != x` is optimised away: test the bits.
fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn is_inf(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u;
}

// Neither value can be written as a constant: the compiler refuses to fold them.
fn infinity() -> f32 {
  var bits = 0x7f800000u;
  return bitcast<f32>(bits);
}

fn not_a_number() -> f32 {
  var bits = 0x7fc00000u;
  return bitcast<f32>(bits);
}

// |x| with the sign bit of s, which sign() does not show for zeros.
fn copy_sign(x: f32, s: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(x) & 0x7fffffffu) | (bitcast<u32>(s) & 0x80000000u));
}

// y * 2^k for |k| < 252: ldexp() is allowed to fail where 2^k alone leaves the range.
fn scale_by_power(y: f32, k: i32) -> f32 {
  let half = k >> 1u;
  let first = bitcast<f32>(u32(half + 127) << 23u);
  let second = bitcast<f32>(u32(k - half + 127) << 23u);
  return y * first * second;
}

// e^r - 1 for |r| <= ln(2) / 2.
fn expm1_core(r: f32) -> f32 {
  let q = (((0.0013926927 * r + 0.008363774) * r + 0.04166655) * r + 0.16666573) * r + 0.5;
  return r + r * r * q;
}

// z - k ln 2 in two parts: k times the first is exact.
fn rest_of_power(z: f32, k: f32) -> f32 {
  return (z - k * 0.693359375) + k * 0.00021219444;
}

fn exp_safe(x: f32) -> f32 {
  let z = clamp(x, -104.0, 89.0);
  let k = round(z * 1.442695);
  let y = scale_by_power(1.0 + expm1_core(rest_of_power(z, k)), i32(k));
  return select(select(y, infinity(), x > 88.72284), x, is_nan(x));
}

fn exp2_safe(x: f32) -> f32 {
  let z = clamp(x, -150.0, 128.0);
  let k = round(z);
  let y = scale_by_power(1.0 + expm1_core((z - k) * LN2), i32(k));
  return select(select(y, infinity(), x >= 128.0), x, is_nan(x));
}

fn expm1_safe(x: f32) -> f32 {
  if (abs(x) < 0.3466) { return expm1_core(x); }
  return exp_safe(x) - 1.0;
}

// log((1 + s) / (1 - s)) for |s| <= 0.1717.
fn log_core(s: f32) -> f32 {
  let z = s * s;
  let q = ((0.23332168 * z + 0.2855076) * z + 0.40000123) * z + 0.6666667;
  return 2.0 * s + s * z * q;
}

// x = m * 2^e with m in [sqrt(1/2), sqrt(2)): returns (log m, e) of a positive finite x.
fn log_split(x: f32) -> vec2<f32> {
  let small = x < 1.17549435e-38;
  let bits = bitcast<u32>(select(x, x * 8388608.0, small));
  let shifted = bits - 0x3f3504f3u;
  let e = bitcast<i32>(shifted) >> 23u;
  let f = bitcast<f32>((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0;
  return vec2<f32>(log_core(f / (2.0 + f)), f32(e - select(0, 23, small)));
}

// What any logarithm gives outside the positive finite numbers, else y.
fn log_edges(x: f32, y: f32) -> f32 {
  if (is_nan(x)) { return x; }
  if (x == 0.0) { return -infinity(); }
  if (x < 0.0) { return not_a_number(); }
  return select(y, x, is_inf(x));
}

fn log_safe(x: f32) -> f32 {
  let v = log_split(x);
  return log_edges(x, v.y * 0.693359375 + (v.x - v.y * 0.00021219444));
}

fn log1p_safe(x: f32) -> f32 {
  if (x > -0.29 && x < 0.41) { return log_core(x / (2.0 + x)); }
  return log_safe(1.0 + x);
}

// tanh() overflows to NaN on some drivers and loses precision near 0.
fn tanh_safe(x: f32) -> f32 {
  let z = 2.0 * min(abs(x), 10.0);
  let k = round(z * 1.442695);
  let power = bitcast<f32>((i32(k) + 127) << 23u);
  let e = power * expm1_core(rest_of_power(z, k)) + (power - 1.0);
  // The sign last: software Vulkan gets select(copy_sign(...), x, is_nan(x)) wrong where a kernel has two of them.
  return copy_sign(select(e / (e + 2.0), x, is_nan(x)), x);
}

fn sigmoid_safe(x: f32) -> f32 {
  return 1.0 / (1.0 + exp_safe(-x));
}

// The product of two words as (low, high).
fn mul_wide(a: u32, b: u32) -> vec2<u32> {
  let a0 = a & 0xffffu;
  let a1 = a >> 16u;
  let b0 = b & 0xffffu;
  let b1 = b >> 16u;
  let low = a0 * b0;
  let mid = a1 * b0 + (low >> 16u);
  let cross = a0 * b1 + (mid & 0xffffu);
  return vec2<u32>((cross << 16u) | (low & 0xffffu), a1 * b1 + (mid >> 16u) + (cross >> 16u));
}

// Payne and Hanek: the bits of 2/pi that matter, times the mantissa, in whole numbers.
fn reduce_large(x: f32) -> vec2<f32> {
  var table = array<u32, 8>(0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                            0xdb629599u, 0x3c439041u, 0xfe5163abu);
  let bits = bitcast<u32>(x) & 0x7fffffffu;
  let m = ((bits & 0x007fffffu) | 0x00800000u) << 8u;
  let start = (bits >> 23u) - 128u;
  let word = start >> 5u;
  let shift = start & 31u;
  var w = array<u32, 3>(0u, 0u, 0u);
  for (var i = 0u; i < 3u; i++) {
    let next = select(0u, table[min(word + i + 1u, 7u)] >> (32u - max(shift, 1u)), shift > 0u);
    w[i] = (table[min(word + i, 7u)] << shift) | next;
  }
  let low = mul_wide(m, w[2]);
  let mid = mul_wide(m, w[1]);
  let p1 = low.y + mid.x;
  let p2 = mid.y + m * w[0] + select(0u, 1u, p1 < low.y);
  let quadrant = (p2 >> 30u) + ((p2 >> 29u) & 1u);
  var hi = (p2 << 2u) | (p1 >> 30u);
  var lo = (p1 << 2u) | (low.x >> 30u);
  let negative = (hi >> 31u) == 1u;
  if (negative) {
    lo = ~lo + 1u;
    hi = ~hi + select(0u, 1u, lo == 0u);
  }
  let r = (f32(hi) * 2.3283064e-10 + f32(lo) * 5.421011e-20) * HALF_PI;
  let flip = negative != (x < 0.0);
  let q = select(quadrant, 4u - quadrant, x < 0.0);
  return vec2<f32>(select(r, -r, flip), f32(q & 3u));
}

// x = r + q * pi/2, |r| <= pi/4: returns (r, q mod 4).
fn reduce_angle(x: f32) -> vec2<f32> {
  if (abs(x) > 8192.0) { return reduce_large(x); }
  let n = round(x * 0.63661975);
  // pi/2 in parts of 11 bits: n times a part is exact.
  let r = ((x - n * 1.5703125) - n * 0.0004837513) - n * 7.549534e-8;
  return vec2<f32>(r - n * 2.5633442e-12, f32(i32(n) & 3));
}

fn sin_core(r: f32) -> f32 {
  let z = r * r;
  let q = ((2.7243782e-06 * z - 0.00019840039) * z + 0.008333332) * z - 0.16666667;
  return r + r * z * q;
}

fn cos_core(r: f32) -> f32 {
  let z = r * r;
  let q = ((-2.7295832e-07 * z + 2.480056e-05) * z - 0.0013888888) * z + 0.041666668;
  return 1.0 - 0.5 * z + z * z * q;
}

// sine of r + q * pi/2.
fn sin_quadrant(r: f32, q: i32) -> f32 {
  let y = select(sin_core(r), cos_core(r), (q & 1) == 1);
  return select(y, -y, (q & 2) == 2);
}

fn finite_or_nan(x: f32, y: f32) -> f32 {
  return select(y, not_a_number(), is_nan(x) || is_inf(x));
}

// The built-in sine is allowed an error of 2^-11, and that between -pi and pi only.
fn sin_safe(x: f32) -> f32 {
  let v = reduce_angle(x);
  return finite_or_nan(x, sin_quadrant(v.x, i32(v.y)));
}

fn cos_safe(x: f32) -> f32 {
  let v = reduce_angle(x);
  return finite_or_nan(x, sin_quadrant(v.x, i32(v.y) + 1));
}

fn atan_safe(x: f32) -> f32 {
  if (is_nan(x)) { return x; }
  let t = abs(x);
  var base = 0.0;
  var r = t;
  if (t > 2.4142135) {
    base = HALF_PI;
    r = -1.0 / t;
  } else if (t > 0.41421357) {
    base = 0.5 * HALF_PI;
    r = (t - 1.0) / (t + 1.0);
  }
  let z = r * r;
  let q = (((-0.06451055 * z + 0.107434675) * z - 0.14263931) * z + 0.1999954) * z - 0.3333333;
  return copy_sign(base + (r + r * z * q), x);
}

// The angle of (x, y); zeros and infinities as C has them.
fn atan2_safe(y: f32, x: f32) -> f32 {
  if (is_nan(x) || is_nan(y)) { return not_a_number(); }
  let left = (bitcast<u32>(x) >> 31u) == 1u;
  var t = 0.0;
  if (is_inf(x) && is_inf(y)) {
    t = 0.5 * HALF_PI;
  } else if (abs(y) > abs(x)) {
    t = HALF_PI - atan_safe(abs(x) / abs(y));
  } else if (y != 0.0) {
    t = atan_safe(abs(y) / abs(x));
  }
  return copy_sign(select(t, 3.1415927 - t, left), y);
}

// erf of |x| < 0.9.
fn erf_core(x: f32) -> f32 {
  let z = x * x;
  let q = ((((-0.0006102687 * z + 0.0050144843) * z - 0.026780719) * z + 0.112821944) * z
           - 0.37612528) * z + 1.1283791;
  return x * q;
}

// erfc(x) * exp(x^2) of x >= 0.5, relative accuracy kept into the tail.
fn erfcx_core(x: f32) -> f32 {
  let t = 1.0 / (1.0 + 0.5 * x);
  let q = (((((((-0.066166095 * t + 0.31506404) * t - 0.5424078) * t + 0.33291742) * t
           - 0.059212003) * t + 0.21449806) * t + 0.24056171) * t + 0.28267154) * t + 0.28207213;
  return t * q;
}

// erfc of x >= 0.5.
fn erfc_core(x: f32) -> f32 {
  // x * x loses 24 bits; the square of its upper half is exact, and the rest is small.
  let hi = bitcast<f32>(bitcast<u32>(x) & 0xfffff000u);
  return erfcx_core(x) * exp_safe(-hi * hi) * exp_safe((hi - x) * (hi + x));
}

fn erf_safe(x: f32) -> f32 {
  if (is_nan(x)) { return x; }
  let t = abs(x);
  if (t < 0.9) { return erf_core(x); }
  return copy_sign(1.0 - erfc_core(min(t, 10.0)), x);
}
