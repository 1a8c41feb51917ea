// y[j] = the sum of x[i, k] over i * stride + k * dilation = j, in each of three dimensions.
// Each element of y has its own invocation and visits only the k that can reach it: no atomics,
// and the sum repeats to the bit.
// cost: 1 operation and 4 bytes an element of a window, 4 written; 64 invocations, no shared memory
@group(0) @binding(1) var<storage, read> x: array<E>;
@group(0) @binding(2) var<storage, read_write> y: array<E>;

// The first and, one too far, the last k whose window can start at j - k * dilation.
fn reach(j: u32, d: u32) -> vec2<u32> {
  let last = (p.count[d] - 1u) * p.stride[d];
  let step = p.dilation[d];
  let first = select(0u, (j - last + step - 1u) / step, j > last);
  return vec2(first, min(j / step + 1u, p.kernel[d]));
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.n) {
    let j = unravel(i, p.sizes.xyz);
    let base = lead_start(j.w);
    let a = reach(j.x, 0u);
    let b = reach(j.y, 1u);
    let c = reach(j.z, 2u);
    var acc = T(0);
    for (var k = a.x; k < a.y; k++) {
      let from_k = j.x - k * p.dilation.x;
      if (from_k % p.stride.x != 0u) { continue; }
      let at_k = base + from_k / p.stride.x * p.start.x + k * p.inner.x;
      for (var l = b.x; l < b.y; l++) {
        let from_l = j.y - l * p.dilation.y;
        if (from_l % p.stride.y != 0u) { continue; }
        let at_l = at_k + from_l / p.stride.y * p.start.y + l * p.inner.y;
        for (var m = c.x; m < c.y; m++) {
          let from_m = j.z - m * p.dilation.z;
          if (from_m % p.stride.z != 0u) { continue; }
          acc += T(x[at_l + from_m / p.stride.z * p.start.z + m * p.inner.z]);
        }
      }
    }
    y[i] = E(acc);
  }
}
