// The result of a recurrent layer where two elements share a word: one invocation writes both, of the states that all
// shared, once they lie in workgroup memory. The four rows of a workgroup lie one behind the other, and begin and end
// with a word: the launcher sees to it.
@group(0) @binding(6) var<storage, read_write> y: array<u32>;  // [T, B, WIDTH]

fn write_y(s: u32, first: u32, u: u32, rows: vec4<f32>) {}

fn shared_at(from_slot: u32, e: u32) -> f32 {
  return x[from_slot + e % WIDTH][e / WIDTH];
}

fn write_pairs(s: u32, first: u32, me: u32) {
  let start = (place(s) * p.batch + first) * WIDTH;
  let end = min(4u, p.batch - first) * WIDTH;
  let slot = h_slot(s + 1u);
  for (var e = 2u * me; e < end; e += 2u * SIZE) {
    y[(start + e) / 2u] = pair(shared_at(slot, e), shared_at(slot, e + 1u));
  }
}
