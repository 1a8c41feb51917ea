"""Elementwise ops in the kernel of a product of matrices: `relu(x @ w + b)` is one dispatch.

A product waits (fuse.py), and what is made of it element by element is computed where it is summed up, before it is
stored. The product itself goes to memory only where somebody holds it.
"""

from .buffers import STORED, Storage
from .elementwise import readings
from .fused_kernel import LANES, Expression, KernelText
from .layout import element_count
from .packed import PACKED, aliases
from .shaders import Source

MAX_BUFFERS = 8
DIMS, ROOM = 4, 32  # of lib/matmul.wgsl's parameters: dimensions of a batch, and the words that are left
REST = 4 * (10 + 4 * DIMS)  # bytes of the product's parameters behind its place


class Tail:
    """A product and what is made of it: the kernel, and the parameters that do not change."""

    def __init__(self, host, expression, signature):
        ops, outputs, _, aligned = signature
        fours = host.shape[-1] % 4 == 0
        sizes, walks = expression.walks()
        how = readings(sizes, walks, aligned) if fours else None
        a, b, *bias = host.args
        self.gpu, launcher = host.gpu, host.launcher
        self.text = StoreText(fours, 4 + len(bias), expression, self.gpu.types, ops, outputs, sizes, walks, how)
        a, b = launcher.operands(a, b)
        plan, a, b, self.lasting = launcher.planned(a, b, bias[0] if bias else None, host.shape, host.dtype, tail=self)
        _, self.kernel, rest, self.pieces = plan
        self.operands = None if self.lasting else (a, b, *bias)
        self.rest, self.head = rest.ljust(REST, b"\0"), expression.head()
        self.words = expression.walk_words(sizes, walks)
        self.nbytes = [element_count(host.shape) * STORED[p.dtype].itemsize for p in expression.group]

    def compiled(self, name, libs, constants, types):
        """The product's kernel with the expression in place of lib/matmul_store*.wgsl."""
        text, packed = aliases(types)
        text += f"const DIMS = {DIMS}u;\n" + constants

        def source():
            made = Source(name, libs, text, packed)
            known = {label for label, _ in made.parts}
            made.parts.append(("store of the expression", self.text.store()))
            made.parts += [part for part in self.text.op_parts() if part[0] not in known]
            return made

        return self.gpu.pipelines.cached((name, libs, text, packed, self.text.key()), source)

    def run(self, expression, host):
        """Queue it; the storages of the group."""
        gpu, leaves, (a, b, *bias) = self.gpu, expression.leaves, self.operands or host.args
        made = [Storage(gpu.take(nbytes), gpu.give) for nbytes in self.nbytes]
        storages = [a.storage, b.storage, made[0], *[x.storage for x in (*bias, *leaves)], *made[1:]]
        bind = (self.kernel.layout.id, *[s.id for s in storages])
        tail = self.rest + self.head.pack(*[v for v, _ in expression.numbers], *[x.offset for x in leaves]) + self.words
        for place, groups in host.launcher.places(self.pieces, a, b, *bias):
            gpu.record(self.kernel, bind, storages, (place + tail).ljust(256, b"\0"), *groups)
        return made


class StoreText(KernelText):
    """Writes the function `store` of four columns of a product, and what it calls.

    fours: whether rows are multiples of four; binding: the first that is free (3 is the first output's).
    """

    z = True

    def __init__(self, fours, binding, *parts):
        super().__init__(*parts)
        self.lanes, self.binding = list(LANES) if fours else [""], binding

    def key(self):
        """What two equal texts have in common."""
        return ("store", len(self.lanes), self.binding, *super().key())

    def store(self):
        """The text: of all four columns at once, or of one that may be the last."""
        later = self.binding + len(self.leaf_types) - 1
        bindings = [self.output(j, later + j if j else 3) for j in range(len(self.outputs))]
        four = len(self.lanes) > 1
        at = "i / 4u" if four else "i"
        puts = [f"  y{j}[{at}] = {self.stored(j, node)};" for j, node in enumerate(self.outputs)]
        lines = [*self.inputs(self.binding), *bindings, self.compute(), *([] if self.wide else self.one())]
        if self.wide:
            made = self.reads(len(self.numbers) + len(self.how), "i")
        else:
            made = [f"  let o{lane} = element(i + {k}u, z{'.' * four}{lane});" for k, lane in enumerate(self.lanes)]
        lines += [f"fn put(i: u32, z: {'vec4<f32>' if four else 'f32'}) {{", *made, *puts, "}"]
        calls = ["  if (n < p.n) { put(i, z); }"]
        if not four:
            calls = [f"  if (n + {k}u < p.n) {{ put(i + {k}u, z.{lane}); }}" for k, lane in enumerate(LANES)]
        lines += ["fn store(batch: u32, m: u32, n: u32, v: vec4<f32>) {", "  if (m >= p.m) { return; }"]
        lines += ["  let i = (batch * p.m + m) * p.n + n;", "  let z = finish(n, v);", *calls, "}", ""]
        return "\n".join(lines)


def after_product(group, host):
    """The storages of a group of values that are made of `host`; None where its kernel cannot write them."""
    expression = Expression(group)
    ops, outputs, views, aligned = signature = expression.signature()
    packs = any(host.gpu.types[p.dtype][1] in PACKED for p in group)
    buffers = len(host.args) + len(expression.leaves) + len(group)
    if expression.words > ROOM or buffers > MAX_BUFFERS or len(host.shape) > 2 + DIMS or (packs and host.shape[-1] % 4):
        return None
    plans, key = host.launcher.plans, ("tail", host.launcher.key(*host.args), host.dtype, ops, outputs, views, aligned)
    tail = plans.get(key)
    if tail is None:
        tail = Tail(host, expression, signature)
        if tail.lasting:
            plans.keep(key, tail)
    return tail.run(expression, host)


def needs(p, host, group):
    """Whether a waiting value has to be made of the host even when all of the group is computed."""
    stack, seen = [p], set()
    while stack:
        x = stack.pop()
        if x is host:
            return True
        if hasattr(x, "launcher") and id(x) not in seen and x not in group:
            seen.add(id(x))
            stack.extend(x.args)
    return False
