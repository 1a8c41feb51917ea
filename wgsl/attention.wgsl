// y = softmax(scale q k^T + mask) v for a query an invocation, over the keys one by one.
// The running maximum (Milakov and Gimelshein 2018) rescales what was summed before; nothing of S numbers is kept.
// The invocations of a workgroup read one key together. E4 and V4 are the sizes of a row in fours.
// cost: 2 S (E + V) operations a query, 4 S (E + V) bytes for 64 queries; 64 invocations, no shared memory, E + V registers
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> lse: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let row = row_of(g, w);
  if (row >= p.rows) { return; }
  let head = row / p.length;
  let i = row % p.length;
  let q_at = start_of(p.q, head, i);
  let k_at = start_of(p.k, head, 0u);
  let v_at = start_of(p.v, head, 0u);
  var query: array<vec4<f32>, E4>;
  for (var e = 0u; e < E4; e++) { query[e] = q[q_at + e]; }
  var acc: array<vec4<f32>, V4>;
  for (var e = 0u; e < V4; e++) { acc[e] = vec4<f32>(); }
  var top = HIDDEN;
  var total = 0.0;
  for (var j = 0u; j < columns_of(i); j++) {
    var product = 0.0;
    for (var e = 0u; e < E4; e++) { product += dot(query[e], k[k_at + j * p.k.row + e]); }
    let s = scored(product, head, i, j);
    if (is_hidden(s)) { continue; }
    let higher = max_of(top, s);
    let shrink = exp_safe(top - higher);
    let weight = exp_safe(s - higher);
    top = higher;
    total = total * shrink + weight;
    let used = weight * dropped(head, i, j);
    for (var e = 0u; e < V4; e++) { acc[e] = acc[e] * shrink + used * v[v_at + j * p.v.row + e]; }
  }
  // A row that sees nothing is 0, and its probabilities are 0 in the gradient too.
  let empty = top == HIDDEN;
  let share = select(1.0 / total, 0.0, empty);
  let y_at = start_of(p.fourth, head, i);
  for (var e = 0u; e < V4; e++) { y[y_at + e] = acc[e] * share; }
  var level = infinity();
  if (!empty) { level = top + log_safe(total); }
  lse[row] = level;
}
