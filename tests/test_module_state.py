"""What stands around state_dict: hooks, state besides tensors, taking tensors over, moving without values; attributes and modes."""

from helpers import assert_raises

import autograd as ag
from autograd import nn


class Counting(nn.Module):
    """A module with state that is no tensor."""

    def __init__(self):
        super().__init__()
        self.inner, self.count = nn.Linear(2, 1), 3

    def get_extra_state(self):
        return {"count": self.count}

    def set_extra_state(self, state):
        self.count = state["count"]


def test_state_besides_tensors():
    net, other = nn.Sequential(Counting()), nn.Sequential(Counting())
    net[0].count = 7
    state = net.state_dict(prefix="net.")
    assert list(state) == ["net.0._extra_state", "net.0.inner.weight", "net.0.inner.bias"]
    other.load_state_dict(net.state_dict())
    assert other[0].count == 7 and ag.equal(other[0].inner.weight, net[0].inner.weight)
    del state["net.0._extra_state"]
    without = {k[4:]: t for k, t in state.items()}
    assert_raises(RuntimeError, "missing: 0._extra_state", lambda: other.load_state_dict(without))
    assert other.load_state_dict(without, strict=False).missing_keys == ["0._extra_state"]
    assert_raises(RuntimeError, "unexpected: _extra_state", lambda: nn.Linear(2, 1).load_state_dict({**nn.Linear(2, 1).state_dict(), "_extra_state": 1}))
    assert_raises(RuntimeError, "[get_extra_state] Linear must define", nn.Linear(2, 1).get_extra_state)
    assert_raises(RuntimeError, "[set_extra_state] Linear must define", lambda: nn.Linear(2, 1).set_extra_state(1))


def test_hooks_around_state_dict():
    net, seen = nn.Sequential(nn.Linear(2, 1), nn.Identity()), []
    handles = [
        net[0].register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append((type(module).__name__, prefix, keep_vars))),
        net[0].register_state_dict_post_hook(lambda module, state, prefix, meta: state.update({f"{prefix}w": state.pop(f"{prefix}weight")})),
        net.register_state_dict_post_hook(lambda module, state, prefix, meta: seen.append(sorted(state))),
    ]
    assert sorted(net.state_dict(prefix="a.", keep_vars=True)) == ["a.0.bias", "a.0.w"]
    assert seen == [("Linear", "a.0.", True), ["a.0.bias", "a.0.w"]]  # children before their parents
    for handle in handles:
        handle.remove()
    assert list(net.state_dict()) == ["0.weight", "0.bias"] and len(seen) == 2


def test_hooks_around_loading():
    net, seen = nn.Sequential(nn.Linear(2, 1)), []

    def rename(module, state, prefix, meta, strict, missing, unexpected, errors):
        seen.append((prefix, strict, missing, unexpected))
        if f"{prefix}w" in state:
            state[f"{prefix}weight"] = state.pop(f"{prefix}w")
        if f"{prefix}broken" in state:
            errors.append(f"{prefix}broken: it is")

    net[0].register_load_state_dict_pre_hook(rename)
    given = {"0.w": ag.ones(1, 2), "0.bias": ag.zeros(1)}
    net.load_state_dict(given)
    assert net[0].weight.tolist() == [[1, 1]] and list(given) == ["0.w", "0.bias"] and seen[0][:2] == ("0.", True)
    assert_raises(RuntimeError, "nothing was loaded. unexpected: 0.broken; wrong: 0.broken: it is",
                  lambda: net.load_state_dict({**given, "0.w": ag.zeros(1, 2), "0.broken": 1}))  # fmt: skip
    assert net[0].weight.tolist() == [[1, 1]]
    forgive = net[0].register_load_state_dict_post_hook(lambda module, result: result.missing_keys.remove("0.bias"))
    assert net.load_state_dict({"0.weight": ag.zeros(1, 2)}) == ([], []) and net[0].weight.tolist() == [[0, 0]]
    assert_raises(RuntimeError, "what matches was loaded. unexpected: other", lambda: net.load_state_dict({"0.weight": ag.ones(1, 2), "other": 1}))
    forgive.remove()
    assert_raises(RuntimeError, "missing: 0.bias", lambda: net.load_state_dict({"0.weight": ag.zeros(1, 2)}))


def test_loading_takes_tensors_over(device):
    net, weight, bias = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1)), ag.ones(1, 2, dtype=ag.float16, device=device), nn.Parameter(ag.ones(1))
    net[0].bias.requires_grad = False
    state = {**net.state_dict(), "0.weight": weight, "0.bias": bias, "1.running_mean": ag.ones(1, device=device)}
    net.load_state_dict(state, assign=True)
    assert net[0].weight.dtype is ag.float16 and net[0].weight.device == device and net[0].weight.requires_grad
    assert net[0].bias is bias and not bias.requires_grad and type(net[0].weight) is nn.Parameter
    assert net[1].running_mean is state["1.running_mean"] and list(dict(net.named_buffers())) == ["1.running_mean", "1.running_var", "1.num_batches_tracked"]
    weight.fill_(2.0)
    assert net[0].weight.tolist() == [[2, 2]]
    assert_raises(RuntimeError, "wrong: 0.weight: expected shape", lambda: net.load_state_dict({**state, "0.weight": ag.ones(3)}, assign=True))
    before = net[0].weight
    assert_raises(TypeError, "[load_state_dict] 0.bias", lambda: net.load_state_dict({**state, "0.weight": ag.ones(1, 2), "0.bias": ag.arange(1)}, assign=True))
    assert net[0].weight is before
    lazy = nn.LazyLinear(1)
    lazy.load_state_dict({"weight": ag.ones(1, 3), "bias": ag.ones(1)}, assign=True)
    assert lazy(ag.ones(2, 3)).tolist() == [[4], [4]]


def test_tensors_taken_over_stay_tied():
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    net[1].weight = net[0].weight
    for state in (net.state_dict(), {"1.weight": ag.ones(2, 2)}):
        net.load_state_dict(state, assign=True, strict=len(state) == 2)
        assert net[0].weight is net[1].weight and len(list(net.parameters())) == 1
    assert net[0].weight.tolist() == [[1, 1], [1, 1]]


def test_files_without_counts_load():
    """num_batches_tracked came late to PyTorch, and other libraries have none: it stays what it was."""
    net = nn.Sequential(nn.BatchNorm1d(1))
    net(ag.ones(2, 1))
    state = {name: value + 1 for name, value in net.state_dict().items() if "tracked" not in name}
    assert net.load_state_dict(state) == ([], [])
    assert net[0].num_batches_tracked.item() == 1 and net[0].weight.tolist() == [2]
    assert_raises(RuntimeError, "missing: 0.weight", lambda: net.load_state_dict({k: v for k, v in state.items() if k != "0.weight"}))


def test_moving_without_values(device):
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    weight = net[0].weight
    assert net.to_empty(device=device) is net and net[0].weight is weight and weight.device == device and weight.shape == (3, 2)
    assert net[1].num_batches_tracked.dtype is ag.int64 and net[1].num_batches_tracked.device == device
    nn.init.ones_(weight)
    net.to_empty(device="cpu", recurse=False)
    assert weight.device == device and weight.tolist() == [[1, 1]] * 3
    assert net[0].type("autograd.HalfTensor") is net[0] and weight.dtype is ag.float16
    assert net[0].type(ag.FloatTensor).weight.dtype is net[0].type("float32").bias.dtype is ag.float32
    assert_raises(TypeError, "[Module.type] a module's dtype is a floating point type", lambda: net.type(ag.int64))


# -- attributes, modes, hooks -----------------------------------------------------------------------------------


class Frozen(nn.Module):
    """A part whose statistics stay as they are, whatever the whole does."""

    act = None

    def __init__(self):
        self.early = 1  # plain attributes need no tables
        super().__init__()
        self.norm = nn.BatchNorm1d(2)

    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()
        return self

    @property
    def width(self):
        return self.norm.features

    @property
    def inner(self):
        return self.norm

    @inner.setter
    def inner(self, value):
        self.norm = value


def test_own_train_property_and_class_attributes():
    net = nn.Sequential(nn.Sequential(Frozen(), nn.Dropout())).eval().train()
    frozen = net[0][0]
    assert (net.training, frozen.training, frozen.norm.training, net[0][1].training, frozen.early) == (True, True, False, True, 1)
    assert_raises(AttributeError, "BatchNorm1d has no attribute 'features'", lambda: frozen.width)
    frozen.inner = nn.BatchNorm1d(3)
    assert frozen.norm.num_features == 3 and list(dict(frozen.named_children())) == ["norm"]
    for value in (nn.ReLU(), nn.Parameter(ag.ones(1))):  # reading net.act would go on giving None
        assert_raises(KeyError, "class attribute 'act'", lambda value=value: setattr(frozen, "act", value))

    class Early(nn.Module):
        def __init__(self):
            self.norm = nn.ReLU()

    assert_raises(AttributeError, "call super().__init__() before", Early)


def test_a_handle_takes_out_its_own_hook():
    seen, net, x = [], nn.Identity(), ag.ones(1, requires_grad=True)
    handles = {}
    for owner, register in ((net, net.register_forward_hook), (x, x.register_hook), (net, net.register_state_dict_post_hook)):
        note = lambda *_: seen.append("a")
        handles[register] = [register(note), register(lambda *_: seen.append("b")), register(note)]
        handles[register][2].remove()
        handles[register][2].remove()
        owner.state_dict() if register == net.register_state_dict_post_hook else net(x * 1).backward()
        assert seen == ["a", "b"], register
        for handle in handles[register][:2]:
            handle.remove()
        seen.clear()
