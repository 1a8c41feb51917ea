// y[t] = step(step(start, 0), ... t) along one axis: a part of a row an invocation. With extra.y
// parts a row, each but the first starts where the part before it ended, which `carry` holds.
// scalar: strides of a, b and y along the axis, then the value before the first, as bits.
@group(0) @binding(1) var<storage, read> a: array<E>;
@group(0) @binding(2) var<storage, read> b: array<E>;
@group(0) @binding(3) var<storage, read> carry: array<C>;
@group(0) @binding(4) var<storage, read_write> y: array<E>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.n) {
    let row = i / p.extra.y;
    let part = i - row * p.extra.y;
    let at = locate(row);
    var state = vec2<T>(T(1), bitcast<T>(p.scalar.w));
    if (part > 0u) { state.y = T(carry[i - 1u]); }
    let first = part * p.extra.x;
    for (var t = first; t < min(first + p.extra.x, p.offset.w); t++) {
      state = step(state, T(a[at.x + t * p.scalar.x]), T(b[at.y + t * p.scalar.y]));
      y[at.z + t * p.scalar.z] = E(state.y);
    }
  }
}
