// One step of SGD in place, for up to eight parameters in one dispatch: g += decay * w; w -= lr * g.
// webgpu/optim.py adds update(), which does one of the parameters, and what it reads and writes by, for float32 and 16 bits.
// cost: 4 operations an element, 8 bytes read and 4 written; 64 invocations, no shared memory
struct Params {
  lr: f32,
  decay: f32,
  pad: vec2<u32>,
  sizes: array<vec4<u32>, 4>,   // invocations and elements of each parameter, two a row
  starts: array<vec4<u32>, 8>,  // where its w and g begin
}
@group(0) @binding(0) var<uniform> p: Params;

struct State {
  w: V,
}

fn step(w: V, g: V) -> State {
  return State(w - p.lr * (g + p.decay * w));
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  update(at.x + at.y * groups.x * 64u);
}
