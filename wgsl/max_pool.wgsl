// y = the largest element of each window, k = its number within the window: the first of equals, a NaN before all.
// cost: 2 operations and 4 bytes an element of a window, 8 bytes written; 64 invocations, no shared memory
@group(0) @binding(1) var<storage, read> x: array<E>;
@group(0) @binding(2) var<storage, read_write> y: array<E>;
@group(0) @binding(3) var<storage, read_write> k: array<i32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.n) {
    let j = unravel(i, p.count.xyz);
    let base = lead_start(j.w) + j.x * p.start.x + j.y * p.start.y + j.z * p.start.z;
    let many = p.kernel.x * p.kernel.y * p.kernel.z;
    let before = max(p.padding.xyz, j.xyz * p.stride.xyz) - j.xyz * p.stride.xyz;
    let inside = min((before + p.dilation.xyz - 1u) / p.dilation.xyz, p.kernel.xyz - 1u);
    var best = T(x[base]);
    // Padding holds the lowest value; where nothing is larger the first element behind it is chosen.
    var chosen = (inside.x * p.kernel.y + inside.y) * p.kernel.z + inside.z;
    for (var number = 1u; number < many; number++) {
      let q = unravel(number, p.kernel.xyz);
      let v = T(x[base + q.x * p.inner.x + q.y * p.inner.y + q.z * p.inner.z]);
      if (!is_nan(best) && (v > best || is_nan(v))) {
        best = v;
        chosen = number;
      }
    }
    y[i] = E(best);
    k[i] = i32(chosen);
  }
}
