"""torch.autograd's names: ag.autograd.grad, backward, Function, functional, gradcheck, anomaly and gradient modes."""

from . import function, functional
from .anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from .function import Function, once_differentiable
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .tape import backward, grad

__all__ = [
    "Function", "GradcheckError", "backward", "detect_anomaly", "enable_grad", "function", "functional", "grad", "gradcheck",
    "gradgradcheck", "inference_mode", "is_anomaly_enabled", "no_grad", "once_differentiable", "set_detect_anomaly",
    "set_grad_enabled",
]  # fmt: skip
