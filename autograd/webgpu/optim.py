"""Launchers of optimizer steps: they write parameters and state in place, several parameters in one dispatch."""

import math
from functools import cache
from struct import Struct

from .elementwise import WORKGROUP
from .large import stretches
from .layout import pack_words, workgroups
from .movement import copy, copy_into
from .packed import accessors, elements_of, libs_of, sides

MOST = 8  # parameters a dispatch: what the numbers of one have room for
ADAM = Struct("<I9f2I")
SGD = Struct("<2f2I")
MOMENTUM = Struct("<4f4I")


def steps(name, letters, sets, numbers):
    """One step of several parameters by wgsl/<name>.wgsl. A set is (parameter, gradient, *state), a letter for each.

    Arrays are of float32 or 16 bits, and what is computed is float32. A dispatch binds all of several sets: 8 buffers are
    what WebGPU grants, and most adapters more.
    """
    alike, copies = {}, []
    for arrays in sets:
        if not arrays[0].size:
            continue
        for k, a in enumerate(arrays):
            if k != 1:
                a.gpu.settle(a.storage)
        work = apart(arrays)
        copies += [(a, w) for k, (a, w) in enumerate(zip(arrays, work, strict=True)) if k != 1 and w is not a]
        for piece in stretches(work):
            alike.setdefault((elements_of(piece), width(piece)), []).append(piece)
    for (elements, unit), ready in alike.items():
        granted = ready[0][0].gpu.wgpu_device.limits["max-storage-buffers-per-shader-stage"]
        for batch in batches(ready, min(granted // len(letters), MOST)):
            launch(name, letters, batch, elements, unit, numbers)
    for target, source in copies:
        copy_into(target, source)


def launch(name, letters, sets, elements, unit, numbers):
    """One dispatch; `unit` elements at a time."""
    gpu = sets[0][0].gpu
    kernel = gpu.kernel(name, libs_of(elements), updates(letters, len(sets), elements, unit))
    counts = [arrays[0].size for arrays in sets]
    sizes = [-(-n // unit) for n in counts]
    both = [n for pair in zip(sizes, counts, strict=True) for n in pair] + [0] * (2 * (MOST - len(sets)))
    starts = [n for arrays in sets for n in ([a.offset // unit for a in arrays] + [0] * (4 - len(arrays)))]
    flat = [a for arrays in sets for a in arrays]
    gpu.run(kernel, flat, numbers + pack_words(both + starts), workgroups(-(-sum(sizes) // WORKGROUP)))


@cache
def updates(letters, count, elements, unit):
    """WGSL of the arrays of `count` parameters, their steps, and update(i), which does the one that an invocation belongs to."""
    text, each = sides(unit), ""
    for k in range(count):
        for j, (letter, element) in enumerate(zip(letters, elements, strict=True)):
            access = "read" if j == 1 else "read_write"
            text += accessors(f"{letter}{k}", len(letters) * k + j + 1, access, element, unit)
        lanes = list(zip(letters, "xyzw", strict=False))
        loads = ", ".join(f"load_{letter}{k}(at.{lane})" for letter, lane in lanes)
        stores = "".join(f"  store_{letter}{k}(at.{lane}, s.{letter}, live);\n" for letter, lane in lanes if letter != "g")
        size, total = (f"p.sizes[{k // 2}].{'xyzw'[k % 2 * 2 + j]}" for j in (0, 1))
        text += f"fn update{k}(i: u32) {{\n  let at = p.starts[{k}] + vec4<u32>(i);\n  let s = step({loads});\n"
        text += f"  let live = inside(i, {total});\n{stores}}}\n"
        each += f"  if (i < {size}) {{\n    update{k}(i);\n    return;\n  }}\n  i -= {size};\n"
    return f"{text}fn update(first: u32) {{\n  var i = first;\n{each}}}\n"


def batches(sets, most):
    """`most` sets of arrays a dispatch; fewer where they lie in one buffer, as parameters that are views of a flat one do."""
    found, seen = [], set()
    for arrays in sets:
        buffers = {a.storage.buffer.id for a in arrays}
        if found and (len(found) == most or seen & buffers):
            yield found
            found, seen = [], set()
        found.append(arrays)
        seen |= buffers
    if found:
        yield found


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


class Adam:
    """`Adam()(p, g, m, v, *, lr, ...)`: updates p, m and v; `decoupled` makes it AdamW. `together` does several sets."""

    def __call__(self, p, g, m, v, **options):
        self.together([(p, g, m, v)], **options)

    def together(self, sets, *, lr, beta1, beta2, eps, weight_decay, decoupled, bias1, bias2):
        """One step of several parameters, each with its gradient and state."""
        numbers = (lr / bias1, eps, beta1, beta2, 1 - beta1, 1 - beta2)
        numbers += (1 / math.sqrt(bias2), weight_decay, 1 - lr * weight_decay)
        steps("adam", "wgmv", sets, ADAM.pack(int(decoupled), *numbers, 0, 0))


class Sgd:
    """`Sgd()(p, g, buf, *, lr, ...)`: updates p, and buf where it is not None. `together` does several sets."""

    def __call__(self, p, g, buf, **options):
        self.together([(p, g) if buf is None else (p, g, buf)], **options)

    def together(self, sets, *, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, first=False):
        """One step of several parameters, all with a buffer or all without."""
        if len(sets[0]) == 2:
            steps("sgd", "wg", sets, SGD.pack(lr, weight_decay, 0, 0))
        else:
            numbers = (lr, weight_decay, momentum, 1 - dampening, int(nesterov), int(first), 0, 0)
            steps("sgd_momentum", "wgm", sets, MOMENTUM.pack(*numbers))
