"""Launchers of optimizer steps: they write parameters and state in place, in one dispatch."""

import math
from struct import Struct

from .elementwise import WORKGROUP
from .large import stretches
from .layout import pack_words, workgroups
from .movement import copy, copy_into

ADAM = Struct("<I9f6I")
SGD = Struct("<4I2f")
MOMENTUM = Struct("<4I4f2I")


def dense(name, written, grad, params):
    """One dispatch over contiguous arrays, by way of copies where they are not; in pieces where they are too large.

    `params(n, offsets)` packs the parameters; both count vec4s where four fit.
    """
    if not grad.size:
        return
    for a in written:
        a.gpu.settle(a.storage)
    work = apart([written[0], grad, *written[1:]])
    for arrays in stretches(work):
        p, gpu = arrays[0], grad.gpu
        unit = 4 if not p.size % 4 and not any(a.offset % 4 for a in arrays) else 1
        kernel = gpu.kernel(name, V="vec4<f32>" if unit == 4 else "f32")
        n, offsets = p.size // unit, [a.offset // unit for a in arrays]
        gpu.run(kernel, arrays, params(n, offsets), workgroups(-(-n // WORKGROUP)))
    for target, source in zip(written, (work[0], *work[2:])):
        if source is not target:
            copy_into(target, source)


def apart(arrays):
    """The arrays, by way of copies where they are not dense, or lie in one buffer: a dispatch that writes binds it once."""
    made, seen = [], set()
    for a in arrays:
        if not a.is_contiguous() or a.storage.buffer.id in seen:
            a = copy(a)
        seen.add(a.storage.buffer.id)
        made.append(a)
    return made


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
        """One step of several parameters, of float32."""
        numbers = (lr / bias1, eps, beta1, beta2, 1 - beta1, 1 - beta2)
        numbers += (1 / math.sqrt(bias2), weight_decay, 1 - lr * weight_decay)
        by_width = {4: [], 1: []}
        copies = []
        for arrays in sets:
            if not arrays[0].size:
                continue
            for a in (arrays[0], *arrays[2:]):
                a.gpu.settle(a.storage)
            work = apart(arrays)
            copies += [(arrays[k], work[k]) for k in (0, 2, 3) if work[k] is not arrays[k]]
            for piece in stretches(work):
                by_width[1 if any(a.offset % 4 for a in piece) else 4].append(piece)
        for unit, ready in by_width.items():
            for two in pairs(ready):
                self.launch(two, unit, (int(decoupled), *numbers))
        for target, source in copies:
            copy_into(target, source)

    def launch(self, sets, unit, numbers):
        """One dispatch; `unit` elements at a time."""
        gpu = sets[0][0].gpu
        declared = ""
        for k in range(2):
            names = [f"{letter}{k}" for letter in "wgmv"]
            if k == len(sets):
                declared += "fn update1(i: u32) {}\n"
                break
            for j, name in enumerate(names):
                access = "read" if j == 1 else "read_write"
                declared += f"@group(0) @binding({4 * k + j + 1}) var<storage, {access}> {name}: array<V>;\n"
            w, g, m, v = (f"{name}[p.starts[{k}].{lane} + i]" for name, lane in zip(names, "xyzw", strict=True))
            inside = f"vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(p.counts[{k}])" if unit == 4 else "true"
            # What lies behind the last element may be another array's: it is written back as it was.
            kept = "".join(f" {a} = select({a}, s.{n}, inside);" for a, n in ((w, "w"), (m, "m"), (v, "v")))
            declared += (
                f"fn update{k}(i: u32) {{\n  let s = adam({w}, {g}, {m}, {v});\n  let inside = {inside};\n {kept}\n}}\n"
            )
        kernel = gpu.kernel("adam", (), declared, V="vec4<f32>" if unit == 4 else "f32")
        counts = [arrays[0].size for arrays in sets] + [0] * (2 - len(sets))
        sizes = [-(-n // unit) for n in counts]
        starts = [a.offset // unit for arrays in sets for a in arrays]
        params = ADAM.pack(*numbers, 0, 0, *sizes, *counts) + pack_words(starts)
        flat = [a for arrays in sets for a in arrays]
        gpu.run(kernel, flat, params, workgroups(-(-sum(sizes) // WORKGROUP)))


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
        def plain(n, offsets):
            return SGD.pack(n, *offsets, 0, lr, weight_decay)

        def with_momentum(n, offsets):
            numbers = (lr, weight_decay, momentum, 1 - dampening)
            return MOMENTUM.pack(n, *offsets, *numbers, int(nesterov), int(first))

        if buf is None:
            dense("sgd", (p,), g, plain)
        else:
            dense("sgd_momentum", (p, buf), g, with_momentum)
