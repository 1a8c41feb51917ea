// Dense arrays one after the other: every row of y is a row of the first, then one of the second, and so on. A V is one
// number or four; sizes and places count V. The launcher declares the arrays, and which of them number c of a row is of.
// cost: no arithmetic, 8 bytes an element; 64 invocations, no shared memory, four elements each where they can be
struct Params {
  n: u32,       // of y
  length: u32,  // of a row of y
  pad: vec2<u32>,
  parts: array<vec4<u32>, 7>,  // of each array: where it begins in a row of y, its row's length, its first element
}
@group(0) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = g.x + g.y * groups.x * 64u;
  if (i >= p.n) { return; }
  let row = i / p.length;
  y[i] = taken(row, i - row * p.length);
}
