// Every word of y is the same; whatever the dtype, this fills memory.
// cost: no arithmetic, 4 bytes written a word; 64 invocations, no shared memory, four words each
struct Params {
  quads: u32,
  word: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = g.x + g.y * w.x * 64u;
  if (i < p.quads) {
    y[i] = vec4<u32>(p.word);
  }
}
