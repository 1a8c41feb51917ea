"""Rows for normalised rows and the cross entropy, in the form of tests/op_cases.py; tests/op_table.py takes them in."""

import math

import numpy as np
from op_cases import Case, Row, on

import autograd as ag
from autograd.op import REGISTRY, apply

SHAPES = (((3, 4), (4,), (4,)), ((2, 5), (5,), (5,)), ((70, 3), (3,), (3,)), ((1, 1), (1,), (1,)))
CLASSES = np.array([2, 0, 1])


def standardised(x, w, b, centred=True):
    """Row by row, in Python numbers."""
    y = np.zeros(x.shape)
    for i, row in enumerate(x.tolist()):
        mean = math.fsum(row) / len(row) if centred else 0.0
        spread = math.sqrt(math.fsum((v - mean) ** 2 for v in row) / len(row) + 0.01)
        y[i] = [(v - mean) / spread for v in row]
    return y * w + b


def norm(centred=True):
    return lambda x, w, b: apply(REGISTRY["layer_norm"], x, w, b, eps=0.01, centred=centred)[0]


def entropy(smoothing):
    """-sum of q log(softmax(x)), q being 1 - s at the class plus s / C everywhere."""

    def reference(x):
        y = []
        for row, t in zip(x.tolist(), CLASSES.tolist()):
            level = max(row) + math.log(math.fsum(math.exp(v - max(row)) for v in row))
            q = [(c == t) * (1 - smoothing) + smoothing / len(row) for c in range(len(row))]
            y.append(-math.fsum(a * (v - level) for a, v in zip(q, row)))
        return np.array(y)

    return reference


def loss(smoothing):
    return lambda x: apply(REGISTRY["cross_entropy"], x, on(x, CLASSES), smoothing=smoothing)[0]


ROWS = {
    "layer_norm": Row(
        (
            Case(norm(), standardised, SHAPES),
            Case(norm(False), lambda *x: standardised(*x, centred=False), SHAPES),
            Case(lambda x: ag.layer_norm(x, (4,), eps=0.01), lambda x: standardised(x, 1, 0), (((3, 4),),)),
        ),
        dtypes=("float32", "float64"), tolerance={"cpu": 1e-5, "wgpu": 1e-5},
    ),
    "cross_entropy": Row(
        tuple(Case(loss(s), entropy(s), (((3, 4),), ((3, 3),), ((3, 70),))) for s in (0.0, 0.125)),
        dtypes=("float32", "float64"), tolerance={"cpu": 1e-5, "wgpu": 1e-5},
    ),
}  # fmt: skip
