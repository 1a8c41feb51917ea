// (key, position) of every element of every row; keys are unsigned and order as the elements
// do, NaN last. p.extra: the row's padded length, and 1 to turn the order round (NaN first). p.scalar.y: the first position.
// What pads a row has the largest key and the largest positions: it sorts behind everything.
// cost: 3 operations, 4 bytes read and 8 written an element; 64 invocations, no shared memory
@group(0) @binding(1) var<storage, read> x: array<E>;
@group(0) @binding(2) var<storage, read_write> pairs: array<vec2<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let i = flat(g, w);
  if (i < p.n) {
    let row = i / p.extra.x;
    let t = i - row * p.extra.x;
    var key = 0xffffffffu;
    if (t < p.offset.w) {
      key = key_of(T(x[locate(row).x + t * p.scalar.x]));
      key = select(key, ~key, p.extra.y == 1u);
    }
    pairs[i] = vec2<u32>(key, t + p.scalar.y);
  }
}
