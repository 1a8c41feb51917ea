// Several arrays times one number that lies in memory, in place: each invocation walks its share of all of them.
// cost: 1 operation, 4 bytes read and 4 written an element; 64 invocations, no shared memory, 256 elements each
struct Params {
  count: u32,                  // invocations
  factor: u32,                 // where the number lies
  pad: vec2<u32>,
  spans: array<vec4<u32>, 7>,  // of each array: elements, first element
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> f: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>) {
  if (g.x < p.count) { walk(g.x, f[p.factor]); }
}
