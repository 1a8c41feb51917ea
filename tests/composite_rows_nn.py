"""Rows for nn.functional's convolutions, pooling, normalisations, resampling and losses, in the form of tests/op_cases.py."""

import itertools
import math

import numpy as np
from op_cases import Case, Row, each, on

import autograd as ag
from autograd.nn import functional as F

PAIR, UNIT_RANGE = ("float32", "float64"), ((0.2, 0.8),)
NEAR = {"cpu": 1e-5, "wgpu": 1e-5}


def conv(x, w, bias=0.0, stride=1, padding=0, dilation=1, groups=1):
    """Convolution of any rank, an output element at a time."""
    n = w.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(padding, padding)] * n)
    sizes = [(length - dilation * (k - 1) - 1) // stride + 1 for length, k in zip(x.shape[2:], w.shape[2:])]
    y = np.zeros((len(x), len(w), *sizes))
    each_in, each_out = w.shape[1], len(w) // groups
    for at in np.ndindex(*y.shape):
        start = at[1] // each_out * each_in
        window = tuple(slice(i * stride, i * stride + dilation * (k - 1) + 1, dilation) for i, k in zip(at[2:], w.shape[2:]))
        y[at] = (x[(at[0], slice(start, start + each_in), *window)] * w[at[1]]).sum()
    return y + np.reshape(bias, (-1, *(1,) * n))


def conv_transpose(x, w, bias=0.0, stride=1, padding=0, extra=0):
    """Every input element adds its weights where they fall."""
    n = w.ndim - 2
    sizes = [(length - 1) * stride + k + extra for length, k in zip(x.shape[2:], w.shape[2:])]
    y = np.zeros((len(x), w.shape[1], *sizes))
    for b, c, *at in np.ndindex(*x.shape):
        window = tuple(slice(i * stride, i * stride + k) for i, k in zip(at, w.shape[2:]))
        y[(b, slice(None), *window)] += x[(b, c, *at)] * w[c]
    y = y[(..., *(slice(padding, s - padding) for s in sizes))]
    return y + np.reshape(bias, (-1, *(1,) * n))


def pooled(x, choose, kernel, stride, padding=0):
    """choose(the elements of each window) over the last two dimensions."""
    sizes = [(length + 2 * padding - kernel) // stride + 1 for length in x.shape[-2:]]
    y = np.zeros((*x.shape[:-2], *sizes))
    for at in np.ndindex(*y.shape):
        spans = [range(max(i * stride - padding, 0), min(i * stride - padding + kernel, s)) for i, s in zip(at[-2:], x.shape[-2:])]
        y[at] = choose([x[(*at[:-2], *place)] for place in itertools.product(*spans)])
    return y


def standardised(x, axes, eps=1e-5):
    d = x - np.mean(x, axes, keepdims=True)
    return d / np.sqrt(np.mean(d * d, axes, keepdims=True) + eps)


def bilinear_sampled(x, size):
    """Both axes of [N, C, H, W] to `size`, half-pixel centres, an element at a time."""
    y = np.zeros((*x.shape[:2], *size))
    for at in np.ndindex(*size):
        spots = [min(max((i + 0.5) * n / s - 0.5, 0), n - 1) for i, n, s in zip(at, x.shape[2:], size)]
        low = [int(s) for s in spots]
        for corner in itertools.product((0, 1), (0, 1)):
            share = math.prod(1 - (s - k) if c == 0 else s - k for s, k, c in zip(spots, low, corner))
            place = [min(k + c, n - 1) for k, c, n in zip(low, corner, x.shape[2:])]
            y[(..., *at)] += share * x[(..., *place)]
    return y


def grid_sampled(x, grid):
    """Bilinear, zeros outside, align_corners=True."""
    y = np.zeros((*x.shape[:2], *grid.shape[1:3]))
    for b, i, j in np.ndindex(*grid.shape[:3]):
        column, row = ((g + 1) / 2 * (n - 1) for g, n in zip(grid[b, i, j], (x.shape[3], x.shape[2])))
        for r, c in itertools.product(range(x.shape[2]), range(x.shape[3])):
            y[b, :, i, j] += x[b, :, r, c] * max(0, 1 - abs(row - r)) * max(0, 1 - abs(column - c))
    return y


def folded(columns, size, kernel):
    y = np.zeros((len(columns), columns.shape[1] // kernel**2, *size))
    wide = size[1] - kernel + 1
    for b, c, place in np.ndindex(*columns.shape):
        plane, inner = divmod(c, kernel**2)
        y[b, plane, place // wide + inner // kernel, place % wide + inner % kernel] += columns[b, c, place]
    return y


def unfolded(x, kernel):
    """Columns: channels and places in the window down, windows across."""
    n, _, h, w = x.shape
    places = list(itertools.product(range(h - kernel + 1), range(w - kernel + 1)))
    return np.stack([x[:, :, i : i + kernel, j : j + kernel].reshape(n, -1) for i, j in places], -1)


def ctc(logp, targets, lengths):
    """-log of the summed probability of every path that collapses to the target; blank 0."""
    losses = []
    for n, target in enumerate(targets):
        total = 0.0
        for path in itertools.product(range(logp.shape[2]), repeat=lengths[n]):
            if [k for k, _ in itertools.groupby(path) if k] == target:
                total += math.exp(sum(logp[t, n, k] for t, k in enumerate(path)))
        losses.append(-math.log(total) / len(target))
    return np.mean(losses)


def ctc_of_scores(x):
    return F.ctc_loss(x.log_softmax(2), on(x, [[1, 2], [1, 1]]), [4, 3], [2, 2])


def log_softmax(x):
    return x - np.log(np.exp(x).sum(2, keepdims=True))


def refused(text, call):
    return ValueError, text, call


def unpooled(x, sizes):
    """Each element of x where UNPOOL says, in planes of `sizes`."""
    planes = x.reshape(-1, 3 if len(sizes) == 1 else 6 if len(sizes) == 2 else 12)
    y = np.zeros((len(planes), math.prod(sizes)))
    for plane, values, places in zip(y, planes, np.reshape(UNPOOL, planes.shape)):
        for value, place in zip(values, places):
            plane[place] = value
    return y.reshape(*x.shape[: x.ndim - len(sizes)], *sizes)


UNPOOL = [[[[0, 3, 5], [2, 1, 4]], [[4, 2, 0], [1, 5, 3]]]]
LABELS = [[0, 2, -1], [1, -1, 0]]
SIGNS = [1.0, -1.0, 1.0]

ROWS = {
    "conv1d": Row(
        (Case(lambda x, w, b: F.conv1d(x, w, b, 2, 1, 2, 2), lambda x, w, b: conv(x, w, b, 2, 1, 2, 2), (((2, 4, 9), (4, 2, 3), (4,)),)),),
        PAIR, tolerance=NEAR,
        errors=(refused("[conv1d] the weight (1, 2, 2) with groups=1 takes 2 channels; got input (1, 1, 4)",
                        lambda d: F.conv1d(ag.ones(1, 1, 4, device=d), ag.ones(1, 2, 2, device=d))),),
    ),
    "conv2d": Row(
        (Case(lambda x, w, b: F.conv2d(x, w, b, padding=1), lambda x, w, b: conv(x, w, b, padding=1), (((2, 2, 4, 3), (3, 2, 3, 3), (3,)),)),
         Case(lambda x, w: F.conv2d(x, w, stride=2, groups=2), lambda x, w: conv(x, w, stride=2, groups=2), (((1, 2, 5, 4), (2, 1, 2, 2)),))),
        PAIR, linear="", tolerance=NEAR,
        errors=(refused('[conv2d] padding="same" needs a stride of 1',
                        lambda d: F.conv2d(ag.ones(1, 1, 4, 4, device=d), ag.ones(1, 1, 2, 2, device=d), stride=2, padding="same")),),
    ),
    "conv3d": Row((Case(lambda x, w: F.conv3d(x, w), conv, (((1, 2, 2, 3, 3), (2, 2, 2, 2, 2)),)),), PAIR, tolerance=NEAR),
    "conv_transpose2d": Row(
        (Case(lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1), lambda x, w, b: conv_transpose(x, w, b, 2, 1, 1), (((2, 2, 2, 3), (2, 2, 3, 3), (2,)),)),),
        PAIR, tolerance=NEAR,
    ),
    "fold": Row(
        (Case(lambda x: F.unfold(x, 2), lambda x: unfolded(x, 2), (((1, 2, 3, 4),),)), Case(lambda x: F.fold(x, (3, 4), 2), lambda x: folded(x, (3, 4), 2), (((2, 8, 6),),))),
        PAIR, linear="jointly",
    ),
    "max_pool2d": Row(
        (Case(lambda x: F.max_pool2d(x, 3, 2, 1), lambda x: pooled(x, max, 3, 2, 1), (((1, 2, 5, 6),),)),), PAIR,
        errors=(refused("[max_pool2d] padding must be in", lambda d: F.max_pool2d(ag.ones(1, 4, 4, device=d), 2, padding=2)),),
    ),
    "max_unpool2d": Row(
        (Case(lambda x: F.max_unpool2d(x, on(x, UNPOOL), 2), lambda x: unpooled(x, (4, 6)), (((1, 2, 2, 3),),)),
         Case(lambda x: F.max_unpool1d(x, on(x, UNPOOL).reshape(4, 3), 3, 2, 1, [6]), lambda x: unpooled(x, (6,)), (((4, 3),),)),
         Case(lambda x: F.max_unpool3d(x, on(x, UNPOOL), (1, 2, 2), output_size=(2, 5, 6)), lambda x: unpooled(x, (2, 5, 6)), (((1, 2, 2, 3),),))),
        PAIR, linear="jointly",
        errors=(refused("[max_unpool2d] indices are what max_pool2d", lambda d: F.max_unpool2d(ag.ones(1, 2, 2, device=d), ag.zeros(1, 2, dtype="int64", device=d), 2)),
                refused("differ from (4, 6) by less than (2, 2)", lambda d: F.max_unpool2d(ag.ones(1, 2, 3, device=d), ag.zeros(1, 2, 3, dtype="int64", device=d), 2, output_size=(4, 8))),
                (IndexError, "[max_unpool1d] indices must lie in [0, 3]; got 5. Give the size before pooling",
                 lambda d: F.max_unpool1d(ag.ones(1, 2, device=d), ag.tensor([[0, 5]], device=d), 2))),
    ),
    "avg_pool2d": Row(
        (Case(lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), lambda x: pooled(x, lambda v: math.fsum(v) / len(v), 3, 2, 1), (((1, 2, 5, 6),),)),
         Case(lambda x: F.adaptive_avg_pool2d(x, (2, 3)), lambda x: pooled(x, lambda v: math.fsum(v) / len(v), 2, 2), (((1, 2, 4, 6),),))),
        PAIR, linear="jointly",
    ),
    "interpolate": Row(
        (Case(lambda x: F.interpolate(x, size=(5, 3), mode="bilinear"), lambda x: bilinear_sampled(x, (5, 3)), (((1, 2, 3, 4),),)),
         Case(lambda x: F.interpolate(x, scale_factor=2), lambda x: x[:, :, [0, 0, 1, 1]], (((2, 2, 2),),))),
        PAIR, linear="jointly",
    ),
    "grid_sample": Row(
        (Case(lambda x, g: F.grid_sample(x, g, align_corners=True), grid_sampled, (((1, 2, 3, 4), (1, 2, 2, 2)),), ((-2.0, 2.0), (0.3, 0.6))),), PAIR, tolerance=NEAR,
    ),
    "pad": Row(
        tuple(Case(lambda x, m=m: F.pad(x, (1, 2), m), lambda x, n=n: np.pad(x, ((0, 0), (0, 0), (1, 2)), n), (((2, 2, 4),),))
              for m, n in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap"))),
        PAIR, linear="jointly",
        errors=(refused("[pad] mode='reflect' cannot add 3 and 0 to a dimension of size 3", lambda d: F.pad(ag.ones(1, 1, 3, device=d), (3, 0), "reflect")),),
    ),
    "batch_norm": Row(
        (Case(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), lambda x, w, b: standardised(x, (0, 2)) * w[:, None] + b[:, None], (((4, 3, 2), (3,), (3,)),)),
         Case(F.instance_norm, lambda x: standardised(x, (2,)), (((2, 2, 5),),)),
         Case(lambda x: F.group_norm(x, 2), lambda x: standardised(x.reshape(2, 2, 6), (2,)).reshape(x.shape), (((2, 4, 3),),))),
        PAIR, tolerance={"cpu": 2e-5, "wgpu": 2e-5},
    ),
    "cdist": Row(
        (Case(lambda a, b: F.cdist(a, b), lambda a, b: np.array([[math.dist(p, q) for q in b] for p in a]), (((3, 2), (4, 2)),)),
         Case(lambda a, b: F.cdist(a, b, 1.0), lambda a, b: np.array([[math.fsum(abs(p - q)) for q in b] for p in a]), (((3, 2), (4, 2)),))),
        PAIR, tolerance=NEAR,
    ),
    "embedding_bag": Row(
        (Case(lambda w: F.embedding_bag(on(w, [0, 2, 1, 1]), w, on(w, [0, 3])), lambda w: np.stack([(w[0] + w[2] + w[1]) / 3, w[1]]), (((3, 2),),)),
         Case(lambda w: F.embedding_bag(on(w, [[0, 2], [1, 1]]), w, mode="max"), lambda w: np.stack([np.where(w[0] > w[2], w[0], w[2]), w[1]]), (((3, 2),),))),
        PAIR,
    ),
    "activations": Row(
        tuple(Case(f, each(g)) for f, g in (
            (F.elu, lambda x: x if x > 0 else math.expm1(x)),
            (F.hardswish, lambda x: x * min(max(x + 3, 0), 6) / 6),
            (F.mish, lambda x: x * math.tanh(math.log1p(math.exp(x)))),
            (F.softshrink, lambda x: x - math.copysign(0.5, x) if abs(x) > 0.5 else 0.0),
            (F.hardtanh, lambda x: min(max(x, -1), 1)),
        )), PAIR, tolerance=NEAR,
    ),
    "losses": Row(
        (Case(lambda a, b: F.huber_loss(a, b, delta=0.7), lambda a, b: np.mean([d * d / 2 if abs(d) <= 0.7 else 0.7 * (abs(d) - 0.35) for d in (a - b).ravel()]), (((3, 4), (3, 4)),)),
         Case(F.binary_cross_entropy, lambda a, b: -np.mean(b * np.log(a) + (1 - b) * np.log(1 - a)), (((3, 4), (3, 4)),), UNIT_RANGE),
         Case(F.kl_div, lambda a, b: np.mean(b * (np.log(b) - a)), (((3, 4), (3, 4)),), UNIT_RANGE),
         Case(lambda x: F.multi_margin_loss(x, on(x, [0, 2])), lambda x: np.mean([sum(max(0, 1 - r[y] + r[j]) for j in range(3) if j != y) / 3 for r, y in zip(x, (0, 2))]), (((2, 3),),)),
         Case(lambda x: F.multilabel_margin_loss(x, on(x, LABELS)), lambda x: np.mean([sum(max(0, 1 - r[y] + r[j]) for y in ys for j in range(3) if j not in ys) / 3 for r, ys in zip(x, ([0, 2], [1]))]), (((2, 3),),)),
         Case(lambda a, b: F.cosine_embedding_loss(a, b, on(a, SIGNS).to(a.dtype)), lambda a, b: np.mean([1 - c if s > 0 else max(0, c) for c, s in zip((a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1)), SIGNS)]), (((3, 4), (3, 4)),))),
        PAIR, tolerance=NEAR,
        errors=(refused("[huber_loss] input and target must have one shape", lambda d: F.huber_loss(ag.ones(2, device=d), ag.ones(2, 1, device=d))),),
    ),
    "ctc_loss": Row((Case(ctc_of_scores, lambda x: ctc(log_softmax(x), [[1, 2], [1, 1]], (4, 3)), (((4, 2, 3),),)),), PAIR, tolerance=NEAR),
}
