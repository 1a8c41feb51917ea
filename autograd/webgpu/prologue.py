"""Reductions that compute what they add up: an expression that nobody else wants is never stored.

The reduction's kernel reads `x[i]`; here that becomes a call of the expression, element by element or by fours.
"""

import re

from .elementwise import readings
from .fused_kernel import KernelText, defined, shared, typed
from .packed import calling
from .shaders import Source, read

MOST_READS = 6
FOLD_WORDS, ROOM = 40, 24  # of lib/fold.wgsl's parameters: its own, and the expression's
BOUND = re.compile(r"@group\(0\) @binding\(1\) var<storage, read> x: .*\n")


class First:
    """The first pass of a reduction over an expression: what of it goes into a plan."""

    def __init__(self, fold, expression, geometry_of, target):
        gpu, self.shape = expression.group[0].gpu, expression.shape
        ops, outputs, _, aligned = expression.signature()
        self.step, self.chunks, _ = geometry_of()
        four = self.step.unit == 4
        sizes, walks = expression.walks()
        how = readings(sizes, walks, aligned) if four else None
        self.text = KernelText(expression, gpu.types, ops, outputs, sizes, walks, how)
        self.head, self.words = expression.head(), expression.walk_words(sizes, walks)
        self.fold, self.four, self.gpu, self.source_dtype = fold, four, gpu, expression.group[0].dtype
        self.step.dtype = target(self.chunks)
        key = ("fold", fold.name, self.step.main, self.step.columns, four, str(self.step.dtype), self.text.key())
        self.kernel = gpu.pipelines.cached(key, self.source)

    def source(self):
        """The reduction's module with the expression in place of x."""
        kind, (result, stored) = self.gpu.types[self.source_dtype][0], self.gpu.types[self.step.dtype]
        libs, constants = self.fold.parts(kind, self.step)
        source = Source(self.fold.name, libs, f"alias T = {kind};\nalias A = {result};\nalias S = {stored};\n{constants}")
        leaves = len(self.text.leaf_types)
        parts = []
        for label, text in source.parts:
            if BOUND.search(text):
                text = calling(BOUND.sub("", text), "x").replace("@binding(2)", f"@binding({leaves + 1})")
            if label == f"lib/{kind}.wgsl":
                text = shared(kind)
            elif kind != "f32" and not label.startswith("declarations"):  # the expression may need the same names of another type
                text = typed(text, kind, defined(read(f"lib/{kind}")), kind)
            parts.append((label, text))
        parts.append(("declarations of the expression", "\n".join([*self.text.inputs(), self.text.compute()])))
        parts.append(("reading of the expression", self.text.loading(self.four)))
        known = {label for label, _ in parts}
        source.parts = parts + [part for part in self.text.op_parts() if part[0] not in known]
        return source

    def run(self, expression):
        """Queue it; what it leaves behind."""
        leaves = expression.leaves
        y = self.gpu.empty(self.step.shape, self.step.dtype)
        own = (bytes(4) + self.step.tail).ljust(4 * FOLD_WORDS, b"\0")
        head = self.head.pack(*[v for v, _ in expression.numbers], *[a.offset for a in leaves])
        self.gpu.run(self.kernel, (*leaves, y), own + head + self.words, self.step.groups)
        return y


def suits(expression, gpu):
    """Whether an expression can be read by a reduction's kernel."""
    dtype = expression.group[0].dtype
    return 0 < len(expression.leaves) <= MOST_READS and expression.words <= ROOM and dtype not in gpu.packed
