// One step of Adam or AdamW in place, for up to eight parameters in one dispatch:
//   w *= 1 - lr * decay             (AdamW), or g += decay * w (Adam)
//   m = beta1 * m + (1 - beta1) * g
//   v = beta2 * v + (1 - beta2) * g * g
//   w -= lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps)
// webgpu/optim.py adds update(), which does one of the parameters, and what it reads and writes by, for float32 and 16 bits.
// cost: 12 operations an element, 16 bytes read and 12 written; 64 invocations, no shared memory
struct Params {
  decoupled: u32,
  rate: f32,          // lr / bias1
  eps: f32,
  beta1: f32,
  beta2: f32,
  rest1: f32,         // 1 - beta1, rounded once
  rest2: f32,         // 1 - beta2
  root: f32,          // 1 / sqrt(bias2)
  decay: f32,
  shrink: f32,        // 1 - lr * decay
  pad: vec2<u32>,
  sizes: array<vec4<u32>, 4>,   // invocations and elements of each parameter, two a row
  starts: array<vec4<u32>, 8>,  // where its w, g, m and v begin
}
@group(0) @binding(0) var<uniform> p: Params;

struct State {
  w: V,
  m: V,
  v: V,
}

fn step(w: V, g: V, m: V, v: V) -> State {
  var weight = w;
  var grad = g;
  if (p.decoupled == 1u) {
    weight *= p.shrink;
  } else {
    grad += p.decay * weight;
  }
  let m1 = p.beta1 * m + p.rest1 * grad;
  let v1 = p.beta2 * v + p.rest2 * grad * grad;
  return State(weight - p.rate * m1 / (sqrt(v1) * p.root + p.eps), m1, v1);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  update(at.x + at.y * groups.x * 64u);
}
