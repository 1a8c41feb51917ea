// pairs[i] = (index[i], i); past n the largest key, so that sorting leaves those last.
struct Params {
  n: u32,
  padded: u32,                // the next power of two
  offset: u32,
  stride: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read_write> pairs: array<vec2<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = g.x + g.y * w.x * 64u;
  if (i < p.padded) {
    let key = select(0xffffffffu, u32(index[p.offset + min(i, p.n - 1u) * p.stride]), i < p.n);
    pairs[i] = vec2<u32>(key, i);
  }
}
