// The parameter slot of the cross_entropy kernels.
struct Params {
  rows: u32,
  classes: u32,
  x: u32,         // where the arrays begin
  t: u32,
  dy: u32,
  stats: u32,
  dy_step: u32,
  given: u32,     // 0: dy is `number` everywhere
  number: f32,
  smoothing: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
