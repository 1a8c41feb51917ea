// The result of a recurrent layer where an invocation may write one element of it.
@group(0) @binding(6) var<storage, read_write> y: array<O>;  // [T, B, WIDTH]

fn write_y(s: u32, first: u32, u: u32, rows: vec4<f32>) {
  let at = (place(s) * p.batch + rows_of(first)) * WIDTH + u;
  for (var i = 0u; i < 4u; i++) { if (first + i < p.batch) { y[at[i]] = O(rows[i]); } }
}

fn write_pairs(s: u32, first: u32, me: u32) {}
