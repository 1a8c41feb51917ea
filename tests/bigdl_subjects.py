"""The BigDL modules that tests/test_bigdl*.py are about, and what they ask of them."""

import numpy as np
from helpers import array

import autograd as ag
from autograd import bigdl, nn


def gru(units=4, device="cpu", dtype="float32", **options):
    return bigdl.Recurrent().add(bigdl.GRU(3, units, device=device, dtype=dtype, **options))


def linear(device):
    return bigdl.Module(nn.Linear(3, 4, device=device))


def stacked(device):
    both = bigdl.BiRecurrent(bigdl.JoinTable(2, 2)).add(bigdl.GRU(3, 2, device=device))
    return bigdl.Sequential().add(both).add(bigdl.Select(2, -1)).add(nn.Linear(4, 2, device=device))


SUBJECTS = {"gru": lambda device: gru(device=device), "linear": linear, "container": stacked}


def pass_of(module, batch=2, steps=5):
    """(x, y, dy) of one forward."""
    x = ag.randn(batch, steps, 3, device=device_of(module))
    y = module.forward(x)
    return x, y, ag.randn(*y.shape, device=y.device)


def device_of(module):
    return str(next(p for _, p in module.named_parameters()).device)


def values(module):
    return np.concatenate([array(p).ravel() for _, p in module.named_parameters()])


def gradients(module):
    return np.concatenate([array(p.grad).ravel() for _, p in module.named_parameters()])


def expected(module, x, dy):
    """(dx, gradients of the parameters) by the tape alone."""
    x = x.detach().requires_grad_()
    return ag.autograd.grad(module(x), [x, *(p for _, p in module.named_parameters())], dy)
