// The parameter slot of the layer_norm kernels. A V is four numbers of a row, or one; sizes and places count V.
struct Params {
  rows: u32,
  length: u32,
  centred: f32,  // 1, or 0 where no mean is taken off
  scale: f32,    // 1 / numbers of a row
  eps: f32,
  chunks: u32,   // of the rows: layer_norm_columns.wgsl
  first: vec2<u32>,
  places: vec4<u32>,  // where the arrays read begin, in the order of their bindings
}
@group(0) @binding(0) var<uniform> p: Params;
