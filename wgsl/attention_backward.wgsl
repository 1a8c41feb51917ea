// dq = scale sum over keys of dS k, dS = P (dy v^T - D), for a query an invocation; P from the row's lse.
// D = sum(dy y) of the row; behind dq it leaves (lse, D) for attention_backward_keys.wgsl.
// cost: 2 S (2 E + V) operations a query, 4 S (E + V) bytes for 64 queries; 64 invocations, no shared memory, 2 E + V registers
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> dy: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> y: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> lse: array<f32>;
@group(0) @binding(7) var<storage, read_write> dq: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let row = row_of(g, w);
  if (row >= p.rows) { return; }
  let head = row / p.length;
  let i = row % p.length;
  let q_at = start_of(p.q, head, i);
  let k_at = start_of(p.k, head, 0u);
  let v_at = start_of(p.v, head, 0u);
  let dy_at = start_of(p.fourth, head, i);
  let y_at = start_of(p.fifth, head, i);
  let dq_at = start_of(p.sixth, head, i);
  var query: array<vec4<f32>, E4>;
  var acc: array<vec4<f32>, E4>;
  for (var e = 0u; e < E4; e++) {
    query[e] = q[q_at + e];
    acc[e] = vec4<f32>();
  }
  var given: array<vec4<f32>, V4>;
  var along = 0.0;
  for (var e = 0u; e < V4; e++) {
    given[e] = dy[dy_at + e];
    along += dot(given[e], y[y_at + e]);
  }
  let known = vec2<f32>(lse[p.lse + row], along);
  for (var j = 0u; j < columns_of(i); j++) {
    var product = 0.0;
    for (var e = 0u; e < E4; e++) { product += dot(query[e], k[k_at + j * p.k.row + e]); }
    let s = scored(product, head, i, j);
    if (is_hidden(s)) { continue; }
    var dp = 0.0;
    for (var e = 0u; e < V4; e++) { dp += dot(given[e], v[v_at + j * p.v.row + e]); }
    let ds = exp_safe(s - known.x) * (dp * dropped(head, i, j) - known.y) * p.scale;
    for (var e = 0u; e < E4; e++) { acc[e] += ds * k[k_at + j * p.k.row + e]; }
  }
  for (var e = 0u; e < E4; e++) { dq[dq_at + e] = acc[e]; }
  dq[p.stats + row] = vec4<f32>(known, 0.0, 0.0);
}
