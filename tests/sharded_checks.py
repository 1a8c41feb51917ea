"""What has to hold of ShardedOptimizer on every backend; distributed_checks.py runs these with its own."""

import numpy as np
from helpers import assert_raises
from optim_rows import STEPS

import autograd as ag
from autograd import distributed, dtypes, nn, optim
from autograd.distributed.backend import backend


def bits(tensors):
    """All values, as bytes."""
    return b"".join(np.ascontiguousarray(t._host()).tobytes() for t in tensors)


def equal_on_all_ranks(tensors):
    """To the bit."""
    mine = np.frombuffer(bits(tensors), np.uint8)
    return all((other == mine).all() for other in backend().all_gather(mine))

def model_of_many_shapes(kind="float32", device="cpu"):
    ag.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 30), nn.Linear(30, 50), nn.Linear(50, 3))
    model.register_parameter("turned", nn.Parameter(ag.randn(5, 7)))
    model.register_parameter("empty", nn.Parameter(ag.zeros(0)))
    model = model.to(device, dtypes.as_dtype(kind))
    model.turned = nn.Parameter(model.turned.detach().T)  # columns first
    return model


def groups(model):
    first, *rest = model.parameters()
    return [{"params": [first], "lr": 0.03}, {"params": rest}]


def give_gradients(model, step):
    """The same on all ranks; one parameter has none."""
    random = np.random.default_rng(step)
    for i, p in enumerate(model.parameters()):
        values = random.standard_normal(p.shape)
        p.grad = None if (step + i) % 5 == 0 else ag.tensor(values, dtype=p.dtype, device=p.device)


def one_step(model, optimizer, schedule, step):
    give_gradients(model, step)
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    schedule.step()


def same_state(a, b):
    """Whether two state_dicts hold the same, to the bit."""
    if a["param_groups"] != b["param_groups"] or {i for i, e in a["state"].items() if e} != {i for i, e in b["state"].items() if e}:
        return False
    pairs = [(e[k], b["state"][i].get(k)) for i, e in a["state"].items() for k in e]
    return all(
        v.shape == w.shape and v.dtype is w.dtype and bits([v]) == bits([w]) if isinstance(v, ag.Tensor) else v == w and type(v) is type(w)
        for v, w in pairs
    )


def without_nothing(state):
    """A state_dict without parameters of no elements, of which a sharded optimizer keeps nothing."""
    kept = {i: e for i, e in state["state"].items() if not any(isinstance(v, ag.Tensor) and not v.numel() for v in e.values())}
    return {**state, "state": kept}


def follow(name, options, kind, device="cpu"):
    """Six steps by the optimizer and by a sharded one, which is replaced in the middle by one that loads its state."""
    a, b = model_of_many_shapes(kind, device), model_of_many_shapes(kind, device)
    if name == "Muon":  # matrices alone
        a, b = (nn.ParameterList([p for p in m.parameters() if p.ndim == 2 and p.numel()]) for m in (a, b))
    kinds = getattr(optim, name)
    plain, shared = kinds(groups(a), **options), distributed.ShardedOptimizer(groups(b), kinds, **options)
    schedules = [optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (plain, shared)]
    for step in range(6):
        one_step(a, plain, schedules[0], step)
        one_step(b, shared, schedules[1], step)
        assert bits(a.parameters()) == bits(b.parameters()), (name, kind, step)
        assert equal_on_all_ranks(b.parameters())
        if step == 3:
            gathered, own = shared.state_dict(), without_nothing(plain.state_dict())
            assert same_state(own, without_nothing(gathered)) if backend().rank == 0 else gathered == {}, (name, kind)
            shared = distributed.ShardedOptimizer(groups(b), kinds, **options)
            shared.load_state_dict(plain.state_dict())
            schedules[1].optimizer = shared
    return plain, shared


def sharded_steps_are_the_optimizers_own():
    """To the bit, with groups, schedules, clipping, missing gradients, parameters in any memory; states go to and fro."""
    longest = {name: options for name, options, _ in sorted(STEPS, key=lambda row: len(row[1]))}  # the row with most options
    for name, options in {**longest, "Muon": {"lr": 0.1}}.items():
        follow(name, options, "float32")
    for kind in ("float64", "float16"):
        for name, options in (("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adam", {"lr": 0.1}), ("NAdam", {"lr": 0.1}), ("Adafactor", {"lr": 0.1})):
            follow(name, options, kind)


def sharded_steps_on_wgpu():
    """The optimizers with kernels of their own; the composites' kernels may round differently when cut differently."""
    follow("AdamW", {"lr": 0.1}, "float32", "wgpu")
    follow("SGD", {"lr": 0.1, "momentum": 0.9}, "float16", "wgpu")


def sharded_state_is_shared_out():
    """Adam's: bytes of this rank at most 1 / size of all, rounded up; Adafactor's: whole parameters, fairly."""

    def held(optimizer):
        return sum(v.nbytes for e in optimizer.state.values() for v in e.values() if isinstance(v, ag.Tensor))

    size = backend().size
    plain, shared = follow("Adam", {"lr": 0.1}, "float32")
    assert held(plain) / size - 64 <= held(shared) <= held(plain) / size + 64
    shared = distributed.ShardedOptimizer([nn.Parameter(ag.zeros(10 + i, 10)) for i in range(4 * size)], optim.Adafactor)
    assert max(shared._loads) <= 1.3 * sum(shared._loads) / size
    more = nn.Parameter(ag.ones(30))
    shared.add_param_group({"params": [more], "lr": 0.5})
    more.grad = ag.ones(30)
    shared.step()
    assert equal_on_all_ranks([more]) and (more != 1).all()


def sharded_refusals():
    """What cannot be shared out, and ranks that disagree."""
    parameters = [nn.Parameter(ag.zeros(3)), nn.Parameter(ag.zeros(3))]
    make = distributed.ShardedOptimizer
    assert_raises(ValueError, "makes its steps from all parameters together", lambda: make(parameters, optim.LBFGS))
    assert_raises(TypeError, "a class of optimizers", lambda: make(parameters, optim.SGD(parameters)))
    assert_raises(TypeError, "learning_rate", lambda: make(parameters, optim.SGD, learning_rate=1))
    optimizer = make(parameters, optim.Adam)
    parameters[backend().rank % 2].grad = ag.ones(3)
    assert_raises(ValueError, "gradients for the same parameters", optimizer.step)
    assert not np.any([p._host() for p in parameters])
    assert_raises(ValueError, "every rank passes the whole state", lambda: optimizer.load_state_dict({}))
    parameters[0].grad = parameters[1].grad = ag.ones(3)
    optimizer.step()
    wrong = optim.Adam([nn.Parameter(ag.zeros(4)), nn.Parameter(ag.zeros(3))])
    wrong.param_groups[0]["params"][0].grad = ag.ones(4)
    wrong.step()
    before = {p: dict(entry) for p, entry in optimizer.state.items()}
    assert_raises(ValueError, "must have shape (3,)", lambda: optimizer.load_state_dict(wrong.state_dict()))
    assert all(optimizer.state[p][k] is v for p, entry in before.items() for k, v in entry.items())
