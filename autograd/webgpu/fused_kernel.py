"""The text of a kernel for an expression: each op's own `fn op`, called one after the other."""

import re
from functools import lru_cache
from struct import Struct

import numpy as np

from . import shaders
from .buffers import STORED, Array, Storage
from .elementwise import BOOL, TYPE_LIBS, Plan, readings, scalar_word
from .layout import broadcast_strides, coalesce, contiguous_strides, element_count, pack_words, workgroups
from .packed import PACKED
from .shaders import WGSL_TYPES, Source

MAX_WORDS = 64  # of a parameter slot
WORKGROUP = 256  # a workgroup costs software Vulkan a quarter of a microsecond
LANES = "xyzw"
FORMATS = {"f32": "f", "i32": "i", "u32": "I"}
UINT8 = np.dtype(np.uint8)


class Expression:
    """A group of pending values as a list of ops in order, with what they read.

    nodes: the pending values, operands first; leaves: the Arrays read; numbers: (value, type).
    A product of matrices among the nodes has no arguments here: the kernel that they run in has its value.
    """

    def __init__(self, group):
        self.group, self.shape = group, group[0].shape
        self.nodes, self.leaves, self.numbers = [], [], []
        self.place, self.leaf_place = {}, {}
        for root in group:
            self.visit(root)
        self.words = len(self.numbers) + len(self.leaves) * (1 + len(self.shape)) + 1 + len(self.shape)

    def visit(self, root):
        """Enter root after all that it is computed from; without recursion."""
        stack = [(root, False)]
        while stack:
            p, ready = stack.pop()
            if id(p) in self.place:
                continue
            if not ready:
                stack.append((p, True))
                inner = [x for x in p.args if not isinstance(x, Array) and hasattr(x, "launcher")]
                stack.extend((x, False) for x in inner if x.storage is None and x.launcher is not None)
                continue
            self.place[id(p)] = len(self.nodes), () if p.product else tuple([self.code(x, p) for x in p.args])
            self.nodes.append(p)

    def code(self, x, user):
        """What stands for an argument: ("v", op), ("x", leaf) or ("k", number)."""
        if isinstance(x, Array):
            return "x", self.leaf(x)
        if not hasattr(x, "launcher"):
            return "k", self.number(x, user.main)
        if x.launcher is None:
            return "k", self.number(x.args[0], x.dtype)
        if x.storage is not None:
            return "x", self.leaf(x.array())
        return "v", self.place[id(x)][0]

    def leaf(self, array):
        """The number of a leaf; one view of one storage is one leaf."""
        key = (array.storage.id, array.offset, array.shape, array.strides, array.dtype)
        if key not in self.leaf_place:
            self.leaf_place[key] = len(self.leaves)
            self.leaves.append(array)
        return self.leaf_place[key]

    def number(self, value, dtype):
        """The number of a scalar operand."""
        kind = WGSL_TYPES[dtype][0]
        self.numbers.append((scalar_word(value, kind), kind))
        return len(self.numbers) - 1

    def signature(self):
        """(ops, places of the outputs among them, views of the leaves, whether all start at multiples of four)."""
        aligned = not any([a.offset & 3 for a in self.leaves])
        ops = tuple([(p.launcher, p.main, p.dtype, self.place[id(p)][1]) for p in self.nodes])
        outputs = tuple([self.place[id(p)][0] for p in self.group])
        return ops, outputs, tuple([(a.shape, a.strides, a.dtype) for a in self.leaves]), aligned

    def run(self, gpu):
        """Queue the kernel; the storages of the group, in order."""
        leaves = self.leaves
        ops, outputs, views, aligned = self.signature()
        key = (ops, outputs, views, self.shape, aligned)
        plan = gpu.fused.get(key) or gpu.fused.keep(key, self.plan(gpu, ops, outputs, aligned))
        storages = [a._storage for a in leaves]
        made = [Storage(gpu.take(nbytes), gpu.give) for nbytes in plan.nbytes]
        storages += made
        head = plan.head.pack(*[v for v, _ in self.numbers], *[a.offset for a in leaves])
        bind = (plan.layout, *[s.id for s in storages])
        gpu.record(plan.kernel, bind, storages, head + plan.tail, plan.x, plan.y)
        return made

    def plan(self, gpu, ops, outputs, aligned):
        """The kernel, and the parts of the parameter slot that do not change."""
        plan = Plan()
        sizes, walks = self.walks()
        text = KernelText(self, gpu.types, ops, outputs, sizes, walks, readings(sizes, walks, aligned))
        plan.kernel = gpu.pipelines.cached(text.key(), text.source)
        plan.layout = plan.kernel.layout.id
        size = element_count(self.shape)
        plan.nbytes = [size * STORED[p.dtype].itemsize for p in self.group]
        plan.x, plan.y = workgroups(-(-size // (WORKGROUP * (1 if text.lanes == [""] else 4))))
        plan.head, words = self.head(), self.walk_words(sizes, walks)
        plan.tail = words.ljust(4 * MAX_WORDS - plan.head.size, b"\0")
        return plan

    def walks(self):
        """(sizes, strides of each leaf): the shape with as few dimensions as all leaves allow."""
        walks = [broadcast_strides(a.shape, a.strides, self.shape) for a in self.leaves]
        sizes, *walks = coalesce(self.shape, *walks) if walks else ([element_count(self.shape)],)
        return sizes, walks

    def head(self):
        """How the parameters that change are packed: numbers, then the leaves' offsets."""
        return Struct("<" + "".join(FORMATS[k] for _, k in self.numbers) + f"{len(self.leaves)}I")

    def walk_words(self, sizes, walks):
        """The parameters that do not."""
        words = [element_count(self.shape), *sizes, *(stride & 0xFFFFFFFF for walk in walks for stride in walk)]
        return pack_words(words)


class KernelText:
    """Writes the WGSL of an expression for a rank and a way of reading each leaf.

    An invocation makes one element, or four: with vec4 loads where all leaves have them, one by
    one where a packed output asks for whole words. z: beside the leaves there is a value of that name.
    """

    z = False

    def __init__(self, expression, types, ops, outputs, sizes, walks, how):
        self.types, self.ops, self.outputs = types, ops, outputs
        packed = any(types[ops[node][2]][1] in PACKED for node in outputs)
        self.lanes = list(LANES) if packed or how is not None else [""]
        self.rank, self.wide = len(sizes), how is not None
        # A leaf that is walked as the output is needs no coordinates.
        dense = contiguous_strides(tuple(sizes))
        self.how = [
            ("dense" if tuple(walk) == dense or not walk else "strided", reading)
            for walk, reading in zip(walks, how or ["one"] * len(walks), strict=True)
        ]
        self.leaf_types = [types[a.dtype] for a in expression.leaves]
        self.numbers = [kind for _, kind in expression.numbers]

    def key(self):
        """What two equal texts have in common."""
        ops = tuple((launcher.name, launcher.out, str(main), str(out), args) for launcher, main, out, args in self.ops)
        return ops, self.outputs, self.rank, self.wide, tuple(self.how), tuple(self.leaf_types), tuple(self.numbers)

    def element(self, node):
        """The type in memory of an op's result."""
        return self.types[self.ops[node][2]][1]

    def source(self):
        """All parts of the module: its main first, then each op's file, then what they share."""
        source = Source.of_text("fused", self.declarations() + self.compute() + self.main())
        source.parts += self.op_parts()
        return source

    def op_parts(self):
        """(name, text) of each op's file, and of what they share."""
        kinds, files, parts = self.kinds(), {}, []
        for (launcher, _, out, args), kind in zip(self.ops, kinds, strict=True):
            if not args:
                continue
            result = "bool" if launcher.out == "bool" else WGSL_TYPES[out][0]
            files[f"{launcher.name}_{kind}_{result}"] = (launcher.name, kind, result)
        for suffix, (name, kind, result) in files.items():
            parts.append((f"{name}.wgsl", specialised(shaders.read(name), kind, result, suffix)))
        used = sorted(set(kinds))
        libs = {"math"} if "f32" in used else set()
        libs.update(memory for _, memory in self.leaf_types)
        libs.update(self.types[out][1] for _, _, out, _ in self.ops)
        libs &= {"math", *PACKED}
        parts += [(f"lib/{lib}.wgsl", shaders.read(f"lib/{lib}")) for lib in sorted(libs)]
        return parts + [(f"lib/{kind}.wgsl", shared(kind)) for kind in used]

    def kinds(self):
        """The type that each op computes in."""
        return [WGSL_TYPES[main][0] for _, main, _, _ in self.ops]

    def word(self, k):
        """Word number k of the parameter slot."""
        return f"p.w[{k // 4}].{LANES[k % 4]}"

    def declarations(self):
        lines = ["struct Params { w: array<vec4<u32>, 16> }", "@group(0) @binding(0) var<uniform> p: Params;", *self.inputs()]
        lines += [self.output(j, len(self.leaf_types) + 1 + j) for j in range(len(self.outputs))]
        return "\n".join([*lines, ""])

    def output(self, j, binding):
        """The declaration of output j."""
        memory = in_memory(self.element(self.outputs[j]), len(self.lanes) > 1)
        return f"@group(0) @binding({binding}) var<storage, read_write> y{j}: array<{memory}>;"

    def inputs(self, binding=1):
        """Declarations of the leaves, from a binding on."""
        lines = []
        for i, ((_, element), (_, reading)) in enumerate(zip(self.leaf_types, self.how, strict=True)):
            memory = in_memory(element, reading == "row")
            lines.append(f"@group(0) @binding({binding + i}) var<storage, read> x{i}: array<{memory}>;")
        return lines

    def compute(self):
        """The function of one element of each leaf, and what it gives."""
        kinds = self.kinds()
        fields = ", ".join(f"y{j}: {WGSL_TYPES[self.ops[node][2]][0]}" for j, node in enumerate(self.outputs))
        names = {"v": "v", "x": "a"}
        given = [f"a{i}: {kind}" for i, (kind, _) in enumerate(self.leaf_types)] + ["z: f32"] * self.z
        lines = [f"struct Out {{ {fields} }}", f"fn compute({', '.join(given)}) -> Out {{"]
        for i, ((launcher, _, out, args), kind) in enumerate(zip(self.ops, kinds, strict=True)):
            result = "bool" if launcher.out == "bool" else WGSL_TYPES[out][0]
            values = ", ".join(
                f"bitcast<{self.numbers[n]}>({self.word(n)})" if code == "k" else f"{names[code]}{n}" for code, n in args
            )
            value = f"op_{launcher.name}_{kind}_{result}({values})" if args else "z"
            lines.append(f"  let v{i} = {rounded(value, out, self.element(i), result)};")
        lines += [f"  return Out({', '.join(f'v{node}' for node in self.outputs)});", "}", ""]
        return "\n".join(lines)

    def main(self):
        """Find the elements, compute, store: one or four an invocation."""
        first, four = len(self.numbers) + len(self.how), len(self.lanes) > 1
        step = "4u * " if four else ""
        lines = [] if self.wide else self.one()
        lines += [
            f"@compute @workgroup_size({WORKGROUP})",
            "fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {",
            f"  let i = g.x + g.y * w.x * {WORKGROUP}u;",
            f"  if ({step}i >= {self.word(first)}) {{ return; }}",
        ]
        if self.wide:
            lines += self.reads(first, "4u * i")
        else:  # past the end a lane makes the last element again: what it writes is padding
            last = f"{self.word(first)} - 1u"
            at = {lane: f"min(4u * i + {k}u, {last})" if four else "i" for k, lane in enumerate(self.lanes)}
            lines += [f"  let o{lane} = element({at[lane]});" for lane in self.lanes]
        lines += [f"  y{j}[i] = {self.stored(j, node)};" for j, node in enumerate(self.outputs)]
        return "\n".join([*lines, "}", ""])

    def one(self):
        """The function of an element's number."""
        return [f"fn element(i: u32{', z: f32' * self.z}) -> Out {{", *self.reads(len(self.numbers) + len(self.how), "i"), "}"]

    def loading(self, four):
        """The function load_x of an element's number, or of that of four: what a kernel calls that reads the first output."""
        kind = WGSL_TYPES[self.ops[self.outputs[0]][2]][0]
        if self.wide:
            lines = self.reads(len(self.numbers) + len(self.how), "4u * i")
            lines = [f"fn load_x(i: u32) -> vec4<{kind}> {{", *lines, f"  return vec4<{kind}>(ox.y0, oy.y0, oz.y0, ow.y0);"]
            return "\n".join([*lines, "}", ""])
        value = f"vec4<{kind}>({', '.join(f'element(4u * i + {k}u).y0' for k in range(4))})" if four else "element(i).y0"
        result = f"vec4<{kind}>" if four else kind
        return "\n".join([*self.one(), f"fn load_x(i: u32) -> {result} {{ return {value}; }}", ""])

    def reads(self, first, index):
        """Statements that read each leaf from element `index` on and compute: one result, or one a lane."""
        lines = self.coordinates(first + 1, index) if any(h == "strided" for h, _ in self.how) else []
        for n, ((walk, reading), (kind, element)) in enumerate(zip(self.how, self.leaf_types, strict=True)):
            at = f"{self.word(len(self.numbers) + n)} + " + (index if walk == "dense" else self.distance(first, n))
            place = f"({at}) / 4u" if reading == "row" else f"({at}) / 2u" if element in PACKED else at
            value = f"x{n}[{place}]"
            if element in PACKED:
                value = f"{element}_four({value})" if reading == "row" else f"{element}_one({value}, {at})"
            value = f"vec4<{kind}>({value})" if reading == "row" else f"{kind}({value})"
            lines.append(f"  let r{n} = {f'vec4<{kind}>({value})' if reading == 'splat' else value};")
        for lane in self.lanes if self.wide else [""]:
            names = [*(f"r{n}" for n in range(len(self.how))), *["z"] * self.z]
            values = ", ".join(f"{name}.{lane}" if lane else name for name in names)
            lines.append(f"  {f'let o{lane} =' if self.wide else 'return'} compute({values});")
        return lines

    def stored(self, j, node):
        """What memory gets of output j."""
        element = self.element(node)
        if element in PACKED:
            return f"{element}_words(vec4<f32>({', '.join(f'o{lane}.y{j}' for lane in self.lanes)}))"
        parts = ", ".join(f"{element}(o{lane}.y{j})" for lane in self.lanes)
        return f"vec4<{element}>({parts})" if len(self.lanes) > 1 else parts

    def coordinates(self, first, index):
        """Statements that take the flat index apart: c0 … of the output."""
        lines = [f"  var rest = {index};"]
        for d in range(self.rank - 1, 0, -1):
            size = self.word(first + d)
            lines.append(f"  let c{d} = rest % {size}; rest = rest / {size};")
        return [*lines, "  let c0 = rest;"]

    def distance(self, first, leaf):
        """How far from a leaf's first element the coordinates lie."""
        strides = first + 1 + self.rank + leaf * self.rank
        return " + ".join(f"c{d} * {self.word(strides + d)}" for d in range(self.rank))


def in_memory(element, four):
    """The type of one element of a buffer, or of four together."""
    if element in PACKED:
        return "vec2<u32>" if four else "u32"
    return f"vec4<{element}>" if four else element


def rounded(value, dtype, element, result):
    """A call's value as memory would give it back, so that fused and unfused agree."""
    if result == "bool":
        return f"u32({value})"
    if dtype == UINT8:
        return f"({value}) & 255u"
    if element == "f16":
        return f"f32(f16({value}))"
    if element in PACKED:
        return f"{element}_round({value})"
    return f"u32({value})" if dtype == BOOL and result != "u32" else value


@lru_cache(maxsize=8)
def shared(kind):
    """lib/<kind>.wgsl for modules of several types: its names carry the type, except f32's."""
    text = shaders.read(f"lib/{kind}")
    return typed(text, kind, defined(text) if kind != "f32" else (), kind)


@lru_cache(maxsize=512)
def specialised(text, kind, result, suffix):
    """An op's file for one type: `op` becomes op_<suffix>, and T and R what they stand for."""
    text = typed(text, kind, defined(text), suffix)
    if kind != "f32":
        text = typed(text, kind, defined(shaders.read(f"lib/{kind}")), kind)
    return re.sub(r"\bR\b", result, text)


def defined(text):
    """The names of the functions that a file defines."""
    return tuple(re.findall(r"\bfn (\w+)\(", text))


def typed(text, kind, names, suffix):
    """`text` with T replaced and each of `names` given a suffix."""
    for name in names:
        text = re.sub(rf"\b{name}\b(?=\()", f"{name}_{suffix}", text)
    return re.sub(r"\bT\b", kind, text)


assert set(TYPE_LIBS) == set(FORMATS)
