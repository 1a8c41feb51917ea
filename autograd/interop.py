"""Meeting other libraries: our functions for theirs."""

from __future__ import annotations

from collections.abc import Callable


def twin_of(function: Callable) -> Callable:
    """Our function with the name of PyTorch's `function`: so that code written with torch.f takes our tensors too."""
    from . import linalg, nn, op, special

    name = getattr(function, "__name__", "")
    for place in (op.PUBLIC, vars(nn.functional), vars(linalg), vars(special)):
        if callable(place.get(name)):
            return place[name]
    raise TypeError(
        f"[{name or repr(function)}] PyTorch's function has no twin here; "
        "convert with torch.from_numpy(x.detach().numpy())"
    )
