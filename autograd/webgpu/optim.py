"""Launchers of optimizer steps: they write parameters and state in place, in one dispatch."""

import math
from functools import cache
from struct import Struct

from .elementwise import WORKGROUP
from .large import stretches
from .layout import pack_words, workgroups
from .movement import copy, copy_into
from .packed import accessors, elements_of, libs_of, sides

ADAM = Struct("<I9f6I")
SGD = Struct("<4I2f")
MOMENTUM = Struct("<4I4f3I")


def dense(name, written, grad, params):
    """One dispatch over contiguous arrays, by way of copies where they are not; in pieces where they are too large.

    `params(n, offsets, count)` packs the parameters: n invocations, offsets as they count, and the elements.
    """
    if not grad.size:
        return
    for a in written:
        a.gpu.settle(a.storage)
    work = apart([written[0], grad, *written[1:]])
    for arrays in stretches(work):
        p, gpu, unit = arrays[0], grad.gpu, width(arrays)
        elements = elements_of(arrays)
        kernel = gpu.kernel(name, libs_of(elements), in_place("wgm", elements, unit))
        n, offsets = -(-p.size // unit), [a.offset // unit for a in arrays]
        gpu.run(kernel, arrays, params(n, offsets, p.size), workgroups(-(-n // WORKGROUP)))
    for target, source in zip(written, (work[0], *work[2:])):
        if source is not target:
            copy_into(target, source)


def apart(arrays):
    """The arrays, by way of copies where they are not dense, or lie in one buffer: a dispatch that writes binds it once.

    Where elements share words, all are read and written by fours, so they begin at such.
    """
    made, seen = [], set()
    by_fours = any(a.dtype in a.gpu.packed for a in arrays)
    for a in arrays:
        if not a.is_contiguous() or a.storage.buffer.id in seen or (by_fours and a.offset % 4):
            a = copy(a)
        seen.add(a.storage.buffer.id)
        made.append(a)
    return made


def width(arrays):
    """How many elements an invocation may take: 4, or 1 where an array does not begin at such."""
    return 1 if any(a.offset % 4 for a in arrays) else 4


@cache
def in_place(letters, elements, unit, first=1, suffix=""):
    """WGSL of the arrays of a step, of which the second, the gradient, is only read."""
    text = "" if suffix else sides(unit)
    for j, (letter, element) in enumerate(zip(letters, elements)):
        text += accessors(letter + suffix, first + j, "read" if j == 1 else "read_write", element, unit)
    return text


def pairs(sets):
    """Two sets of arrays a dispatch; one where they lie in one buffer, as parameters that are views of a flat one do."""
    i = 0
    while i < len(sets):
        first, *second = sets[i : i + 2]
        beside = {a.storage.buffer.id for a in first}
        if second and not any(a.storage.buffer.id in beside for a in second[0]):
            yield [first, second[0]]
            i += 2
        else:
            yield [first]
            i += 1


class Adam:
    """`Adam()(p, g, m, v, *, lr, ...)`: updates p, m and v; `decoupled` makes it AdamW.

    `together([(p, g, m, v), ...], ...)` does two parameters a dispatch: eight buffers are what WebGPU grants.
    """

    def __call__(self, p, g, m, v, **options):
        self.together([(p, g, m, v)], **options)

    def together(self, sets, *, lr, beta1, beta2, eps, weight_decay, decoupled, bias1, bias2):
        """One step of several parameters; each array is of float32 or 16 bits, and what is computed is float32."""
        numbers = (lr / bias1, eps, beta1, beta2, 1 - beta1, 1 - beta2)
        numbers += (1 / math.sqrt(bias2), weight_decay, 1 - lr * weight_decay)
        alike = {}
        copies = []
        for arrays in sets:
            if not arrays[0].size:
                continue
            for a in (arrays[0], *arrays[2:]):
                a.gpu.settle(a.storage)
            work = apart(arrays)
            copies += [(arrays[k], work[k]) for k in (0, 2, 3) if work[k] is not arrays[k]]
            for piece in stretches(work):
                alike.setdefault((elements_of(piece), width(piece)), []).append(piece)
        for (elements, unit), ready in alike.items():
            for two in pairs(ready):
                self.launch(two, elements, unit, (int(decoupled), *numbers))
        for target, source in copies:
            copy_into(target, source)

    def launch(self, sets, elements, unit, numbers):
        """One dispatch; `unit` elements at a time."""
        gpu = sets[0][0].gpu
        kernel = gpu.kernel("adam", libs_of(elements), self.updates(len(sets), elements, unit))
        counts = [arrays[0].size for arrays in sets] + [0] * (2 - len(sets))
        sizes = [-(-n // unit) for n in counts]
        starts = [a.offset // unit for arrays in sets for a in arrays]
        params = ADAM.pack(*numbers, 0, 0, *sizes, *counts) + pack_words(starts)
        flat = [a for arrays in sets for a in arrays]
        gpu.run(kernel, flat, params, workgroups(-(-sum(sizes) // WORKGROUP)))

    @staticmethod
    @cache
    def updates(count, elements, unit):
        """WGSL of the arrays of one or two parameters, and their steps."""
        text = sides(unit)
        for k in range(count):
            text += in_place("wgmv", elements, unit, 4 * k + 1, str(k))
            loads = ", ".join(f"load_{letter}{k}(at.{lane})" for letter, lane in zip("wgmv", "xyzw", strict=True))
            stores = "".join(
                f"  store_{letter}{k}(at.{lane}, s.{letter}, live);\n" for letter, lane in zip("wmv", "xzw", strict=True)
            )
            text += f"fn update{k}(i: u32) {{\n  let at = p.starts[{k}] + vec4<u32>(i);\n  let s = adam({loads});\n"
            text += f"  let live = inside(i, p.counts[{k}]);\n{stores}}}\n"
        return text if count == 2 else text + "fn update1(i: u32) {}\n"


class Sgd:
    """`Sgd()(p, g, buf, *, lr, ...)`: updates p, and buf where it is not None."""

    def __call__(
        self,
        p,
        g,
        buf,
        *,
        lr,
        momentum=0.0,
        dampening=0.0,
        weight_decay=0.0,
        nesterov=False,
        first=False,
    ):
        def plain(n, offsets, count):
            return SGD.pack(n, *offsets, count, lr, weight_decay)

        def with_momentum(n, offsets, count):
            numbers = (lr, weight_decay, momentum, 1 - dampening)
            return MOMENTUM.pack(n, *offsets, *numbers, int(nesterov), int(first), count)

        if buf is None:
            dense("sgd", (p,), g, plain)
        else:
            dense("sgd_momentum", (p, buf), g, with_momentum)
