// What the forward kernels of gated cells keep for backward.
@group(0) @binding(7) var<storage, read_write> saved: array<f32>;  // [parts, T, B, UNITS]

fn saved_at(s: u32, first: u32, number: u32, u: u32) -> vec4<u32> {
  let kept = select(vec2<u32>(0u, 1u), vec2<u32>(place(s), p.steps), p.save != 0u);
  return ((number * kept.y + kept.x) * p.batch + rows_of(first)) * UNITS + u;
}

fn write_saved(s: u32, first: u32, number: u32, u: u32, rows: vec4<f32>) {
  let at = saved_at(s, first, number, u);
  for (var i = 0u; i < 4u; i++) { if (first + i < p.batch) { saved[at[i]] = rows[i]; } }
}

fn read_saved(s: u32, first: u32, number: u32, u: u32) -> vec4<f32> {
  let at = saved_at(s, first, number, u);
  return vec4<f32>(saved[at.x], saved[at.y], saved[at.z], saved[at.w]);
}
