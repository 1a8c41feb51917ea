"""torch.autograd's names: ag.autograd.grad, backward, gradcheck, gradgradcheck and the gradient modes."""

from .grad_mode import enable_grad, no_grad, set_grad_enabled
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .tape import backward, grad

__all__ = ["GradcheckError", "backward", "enable_grad", "grad", "gradcheck", "gradgradcheck", "no_grad", "set_grad_enabled"]
