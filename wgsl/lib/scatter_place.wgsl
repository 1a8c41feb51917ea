// What both ways to scatter share: the parameters, x, src and y, and where an element of y stands in each operand.
struct Params {
  offset: vec4<u32>,             // of x, of the index (0 where it is sorted) and of src
  n: u32,
  rank: u32,
  axis: u32,
  length: u32,                   // of index along the axis
  step: vec4<u32>,               // strides of index and src along the axis
  limits: array<vec4<u32>, 2>,   // index's sizes, which may be smaller than x's
  dims: array<vec4<u32>, 8>,     // size of x, strides of x, of index (or the rows of its pairs) and src; 0 on the axis
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<E>;
@group(0) @binding(3) var<storage, read> src: array<E>;
@group(0) @binding(4) var<storage, read_write> y: array<S>;

// at: places in x, index and src; here: the coordinate along the axis; length: how much of the index can name it.
struct Place {
  at: vec3<u32>,
  here: u32,
  length: u32,
}

fn place_of(i: u32, live: bool) -> Place {
  var rest = i;
  var at = p.offset.xyz;
  var here = 0u;
  var reached = true;
  for (var d = select(0u, p.rank, live); d > 0u; d--) {
    let dim = p.dims[d - 1u];
    let next = rest / dim.x;
    let k = rest - next * dim.x;
    at += k * dim.yzw;
    rest = next;
    if (d - 1u == p.axis) {
      here = k;
    } else {
      reached = reached && k < p.limits[(d - 1u) / 4u][(d - 1u) % 4u];
    }
  }
  return Place(at, here, select(0u, p.length, live && reached));
}
