// What each part of a row does to the value that comes in: state after the part, from nothing.
// The parts of a row, joined by the same scan, are the carries of lib/scan.wgsl.
@group(0) @binding(1) var<storage, read> a: array<E>;
@group(0) @binding(2) var<storage, read> b: array<E>;
@group(0) @binding(3) var<storage, read_write> factor: array<C>;
@group(0) @binding(4) var<storage, read_write> end: array<C>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.n) {
    let row = i / p.extra.y;
    let part = i - row * p.extra.y;
    let at = locate(row);
    var state = vec2<T>(T(1), nothing());
    let first = part * p.extra.x;
    for (var t = first; t < min(first + p.extra.x, p.offset.w); t++) {
      state = step(state, T(a[at.x + t * p.scalar.x]), T(b[at.y + t * p.scalar.y]));
    }
    factor[i] = C(state.x);
    end[i] = C(state.y);
  }
}
