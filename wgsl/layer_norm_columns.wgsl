// dw = sum of dy z and db = sum of dy over the rows, z = (x - m) f: every chunks-th row of a column an invocation.
// cost: 5 operations and 8 bytes an element, 8 a column and chunk; 64 invocations, no shared memory, 256 rows each
@group(0) @binding(1) var<storage, read> x: array<V>;
@group(0) @binding(2) var<storage, read> dy: array<V>;
@group(0) @binding(3) var<storage, read> stats: array<vec2<f32>>;
@group(0) @binding(4) var<storage, read_write> dw: array<V>;
@group(0) @binding(5) var<storage, read_write> db: array<V>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = g.x + g.y * groups.x * 64u;
  if (i >= p.chunks * p.length) { return; }
  let chunk = i / p.length;
  let column = i - chunk * p.length;
  var weight = V(0.0);
  var bias = V(0.0);
  for (var row = chunk; row < p.rows; row += p.chunks) {
    let known = stats[p.places.z + row];
    let v = dy[p.places.y + row * p.length + column];
    weight += v * ((x[p.places.x + row * p.length + column] - known.x) * known.y);
    bias += v;
  }
  dw[i] = weight;
  db[i] = bias;
}
