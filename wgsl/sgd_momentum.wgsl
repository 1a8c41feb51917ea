// One step of SGD with momentum in place, for up to eight parameters in one dispatch:
//   g += decay * w
//   m = g at the first step, else momentum * m + (1 - dampening) * g
//   w -= lr * m, or with Nesterov w -= lr * (g + momentum * m)
// webgpu/optim.py adds update(), which does one of the parameters, and what it reads and writes by, for float32 and 16 bits.
// cost: 7 operations an element, 12 bytes read and 8 written; 64 invocations, no shared memory
struct Params {
  lr: f32,
  decay: f32,
  momentum: f32,
  keep: f32,          // 1 - dampening
  nesterov: u32,
  first: u32,
  pad: vec2<u32>,
  sizes: array<vec4<u32>, 4>,   // invocations and elements of each parameter, two a row
  starts: array<vec4<u32>, 8>,  // where its w, g and m begin
}
@group(0) @binding(0) var<uniform> p: Params;

struct State {
  w: V,
  m: V,
}

fn step(w: V, g: V, m: V) -> State {
  let grad = g + p.decay * w;
  var m1 = grad;
  // What m holds before the first step is nobody's: it must not even be multiplied by 0.
  if (p.first == 0u) {
    m1 = p.momentum * m + p.keep * grad;
  }
  return State(w - p.lr * select(m1, grad + p.momentum * m1, p.nesterov == 1u), m1);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  update(at.x + at.y * groups.x * 64u);
}
