// dk = scale sum over queries of dS q and dv = sum of P dy, for a key an invocation.
// Each destination has one invocation, so results repeat to the bit. stats holds dq, and behind it (lse, D) of each query.
// cost: 2 L (2 E + 2 V) operations a key, 4 L (E + V) bytes for 64 keys; 64 invocations, no shared memory, 2 (E + V) registers
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> dy: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> stats: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> dk: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> dv: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  let row = row_of(g, w);
  if (row >= p.rows) { return; }
  let head = row / p.columns;
  let j = row % p.columns;
  let q_at = start_of(p.q, head, 0u);
  let k_at = start_of(p.k, head, j);
  let v_at = start_of(p.v, head, j);
  let dy_at = start_of(p.fourth, head, 0u);
  var key: array<vec4<f32>, E4>;
  var acc: array<vec4<f32>, E4>;
  for (var e = 0u; e < E4; e++) {
    key[e] = k[k_at + e];
    acc[e] = vec4<f32>();
  }
  var value: array<vec4<f32>, V4>;
  var sum: array<vec4<f32>, V4>;
  for (var e = 0u; e < V4; e++) {
    value[e] = v[v_at + e];
    sum[e] = vec4<f32>();
  }
  for (var i = first_of(j); i < p.length; i++) {
    var product = 0.0;
    for (var e = 0u; e < E4; e++) { product += dot(key[e], q[q_at + i * p.q.row + e]); }
    let s = scored(product, head, i, j);
    if (is_hidden(s)) { continue; }
    let known = stats[p.stats + head * p.length + i].xy;
    let weight = exp_safe(s - known.x);
    let keep = dropped(head, i, j);
    var dp = 0.0;
    for (var e = 0u; e < V4; e++) {
      let d = dy[dy_at + i * p.fourth.row + e];
      dp += dot(value[e], d);
      sum[e] += (weight * keep) * d;
    }
    let ds = weight * (dp * keep - known.y) * p.scale;
    for (var e = 0u; e < E4; e++) { acc[e] += ds * q[q_at + i * p.q.row + e]; }
  }
  let dk_at = start_of(p.fifth, head, j);
  let dv_at = start_of(p.sixth, head, j);
  for (var e = 0u; e < E4; e++) { dk[dk_at + e] = acc[e]; }
  for (var e = 0u; e < V4; e++) { dv[dv_at + e] = sum[e]; }
}
