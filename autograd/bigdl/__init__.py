"""BigDL: its module protocol around any nn.Module, its Recurrent and its GRU.

    model = bigdl.Sequential().add(bigdl.Recurrent().add(bigdl.GRU(3, 16))).add(bigdl.Select(2, -1)).add(nn.Linear(16, 2))
    weight, gradient = model.get_parameters()                  # two vectors; their memory is the model's
    output = model.forward(x)
    model.zero_grad_parameters()
    model.backward(x, criterion_gradient)
    weight -= 0.1 * gradient                                   # or ag.optim.SGD(model.parameters(), lr=0.1).step()
"""

from .cell import GRU, Cell
from .containers import CAddTable, JoinTable, Select, Sequential
from .module import Module, Parameters
from .recurrent import BiRecurrent, Recurrent
from .regularizer import L1L2Regularizer, L1Regularizer, L2Regularizer

__all__ = [
    "Module", "Parameters", "Cell", "GRU", "Recurrent", "BiRecurrent", "Sequential", "CAddTable", "JoinTable", "Select",
    "L1Regularizer", "L2Regularizer", "L1L2Regularizer",
]  # fmt: skip
