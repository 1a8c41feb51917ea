"""What the processes of test_distributed.py run: they import it by name, so it stands in a module of its own.

A case trains with this rank's share of each batch and returns what came out. Run by one process alone it takes whole
batches: the same lines are their own reference.
"""

import os
import signal
from functools import partial

import numpy as np

import autograd as ag
from autograd import distributed, nn, optim
from autograd.distributed.sampler import share

BATCHES = (8, 7, 1, 5, 3) * 4  # 20 steps; a batch of one leaves ranks without samples


class Net(nn.Module):
    """A small network with a layer that nothing uses."""

    def __init__(self, dtype=ag.float64, norm=None):
        super().__init__()
        self.first, self.last = nn.Linear(6, 16), nn.Linear(16, 3)
        self.norm = nn.Identity() if norm is None else norm(16)
        self.unused = nn.Linear(2, 2)
        self.to(dtype)

    def forward(self, x):
        return self.last(self.norm(self.first(x)).tanh())


class Dropping(Net):
    """With dropout and running statistics, which have a say in training: what is random, and what is not trained."""

    def __init__(self):
        super().__init__(ag.float32, nn.BatchNorm1d)
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        return self.last(self.drop(self.norm(self.first(x)).tanh()) + self.norm.running_mean)


class Exploding(nn.Module):
    """A module that cannot be made."""

    def __init__(self):
        raise ArithmeticError("no such network")


def normed():
    """With statistics of the whole batch."""
    return distributed.convert_sync_batchnorm(Net(norm=nn.BatchNorm1d))


def mse(y, target):
    return ((y - target) ** 2).mean()


def batches(sizes=BATCHES, dtype=np.float64):
    """This rank's share of each batch, and how large the batch is."""
    numbers, rank, size = np.random.default_rng(0), distributed.rank(), distributed.size()
    for total in sizes:
        x, y = numbers.standard_normal((total, 6)).astype(dtype), numbers.standard_normal((total, 3)).astype(dtype)
        mine = slice(share(total, size, rank), share(total, size, rank + 1))
        yield ag.from_numpy(x[mine].copy()), ag.from_numpy(y[mine].copy()), total


def replica(make=Net, **options):
    """A DataParallel that differs from rank to rank until it is one."""
    ag.manual_seed(distributed.rank())
    return distributed.DataParallel(make(), **options)


def weights(model):
    return {name: t.numpy().copy() for name, t in model.state_dict().items()}


def gradients(model):
    return {name: p.grad.numpy().copy() for name, p in model.module.named_parameters() if p.grad is not None}


# --- trainings: one process with whole batches is the reference ---


def trained(optimizer=optim.SGD, max_norm=None, bucket_bytes=1 << 20, told=True, **options):
    """20 steps; a rank without samples does not run backward."""
    model = replica(bucket_bytes=bucket_bytes)
    stepper = optimizer(model.parameters(), **options)
    for x, y, total in batches():
        stepper.zero_grad()
        with model.sync(len(x), total if told else None):
            if len(x):
                mse(model(x), y).backward()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        stepper.step()
    assert model.module.unused.weight.grad is None  # no rank has one, so nobody steps it
    return weights(model)


def empty_backward():
    """A rank without samples runs backward all the same: its loss and gradients are NaN, and count for nothing."""
    model = replica()
    for x, y, total in batches((1, 2, 1)):
        model.zero_grad()
        with model.sync(len(x), total):
            loss = mse(model(x), y)
            (loss if len(x) else loss + model.module.first.weight.sum() * float("nan")).backward()
    return gradients(model)


def two_backwards(bucket_bytes=1):
    """Two backwards in one sync: the second's gradients come when the first's are on their way."""
    model = replica(bucket_bytes=bucket_bytes)
    for x, y, total in batches((8, 6)):
        model.zero_grad()
        with model.sync(len(x), total):
            mse(model(x), y).backward()
            sent = [bucket.request is not None for bucket in model._buckets]
            assert distributed.size() == 1 or sent == [True] * (len(sent) - 1) + [False]  # before backward was over
            (model(x).sum() / len(x)).backward()
    return gradients(model)


def split_on_one(bucket_bytes=1):
    """Rank 0 alone runs its samples one by one: the others must notice that more is to come."""
    model = replica(bucket_bytes=bucket_bytes)
    for x, y, total in batches((8, 7)):
        model.zero_grad()
        parts = [slice(i, i + 1) for i in range(len(x))] if distributed.rank() == 0 else [slice(None)]
        with model.sync(len(x), total):
            for part in parts:
                (mse(model(x[part]), y[part]) * (len(x[part]) / len(x))).backward()
    return gradients(model)


def accumulated():
    """One backward outside, which stays this rank's own, then one within sync: what is averaged is their sum."""
    model = replica(bucket_bytes=1)
    (x, y, _), (x2, y2, total) = batches((8, 8))
    mse(model(x), y).backward()
    own = [t.numpy().tobytes() for t in distributed.all_gather(model.module.last.weight.grad)]
    assert len(set(own)) == distributed.size()
    with model.sync(len(x2), total):
        mse(model(x2), y2).backward()
    return gradients(model)


def hooked():
    """A hook on one parameter, one parameter frozen, and a layer that is used twice."""
    model = replica(bucket_bytes=1)
    model.module.last.weight.register_hook(lambda g: g * 2)
    model.module.first.bias.requires_grad = False
    for x, y, total in batches((8, 5)):
        model.zero_grad()
        with model.sync(len(x), total):
            middle = model.module.first(x).tanh()
            again = model.module.first(middle[:, :6]).tanh()
            mse(model.module.last(again), y).backward()
    return gradients(model)


def unused_here():
    """The second half of the batch does not use the first layer: on some ranks it has no gradient at all."""
    model = replica(bucket_bytes=1)
    for x, y, total in batches((8,)):
        kept = min(max(4 - share(total, distributed.size(), distributed.rank()), 0), len(x))
        with model.sync(len(x), total):
            h = model.module.first(x[:kept]) if kept else None
            rest = model.module.first(x[kept:]).detach()
            mse(model.module.last((rest if h is None else ag.cat([h, rest])).tanh()), y).backward()
            assert kept or model.module.first.weight.grad is None
    return gradients(model)


def half_weights():
    """bfloat16 parameters: their gradients are averaged in float32."""
    model = replica(partial(Net, ag.bfloat16))
    for x, y, total in batches((8,)):
        with model.sync(len(x), total):
            mse(model(x.bfloat16()).float(), y.float()).backward()
    model.module.float()
    return gradients(model)


def sync_norm(momentum=0.1):
    """BatchNorm over the whole batch, 2-d and 4-d, in training and then in evaluation; ranks with an empty share too."""
    model = replica(partial(Net, norm=partial(nn.BatchNorm1d, momentum=momentum)), bucket_bytes=1)
    plain = nn.BatchNorm2d(3).double()
    distributed.convert_sync_batchnorm(model)
    layer = distributed.convert_sync_batchnorm(plain)
    assert distributed.size() == 1 or isinstance(model.module.norm, distributed.SyncBatchNorm)
    assert layer is not plain and layer.weight is plain.weight and layer.running_var is plain.running_var
    stepper = optim.SGD(model.parameters(), lr=0.1)
    out = []
    for x, y, total in batches((8, 7, 2, 5, 3)):
        stepper.zero_grad()
        with model.sync(len(x), total):
            mse(model(x), y).backward()
        stepper.step()
        layer(x.reshape(-1, 3, 2, 1))
    out = weights(model) | {f"layer.{name}": value for name, value in weights(layer).items()}
    model.eval()
    with ag.no_grad():
        out["evaluated"] = model(ag.ones(2, 6, dtype=ag.float64)).numpy()
    return out


CASES = {
    "sgd": trained,
    "momentum, clipping, decay": partial(trained, max_norm=0.5, lr=0.1, momentum=0.9, weight_decay=0.01),
    "the same in small buckets": partial(trained, max_norm=0.5, bucket_bytes=100, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adamw, counts asked for": partial(trained, optim.AdamW, 0.5, 1, False, lr=0.01),
    "backward without samples": empty_backward,
    "two backwards": two_backwards,
    "two backwards, one bucket": partial(two_backwards, 1 << 20),
    "split on one rank": split_on_one,
    "split on one rank, one bucket": partial(split_on_one, 1 << 20),
    "accumulated": accumulated,
    "hooks, frozen, used twice": hooked,
    "unused on some ranks": unused_here,
    "bfloat16": half_weights,
    "synchronised norm": sync_norm,
    "synchronised norm, all batches alike": partial(sync_norm, None),
}  # fmt: skip


# --- operations: what each rank returns is compared with what it should be ---

DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8")
SIZES = ((), (0,), (5,), (3, 150_001))  # the last, in float32, takes two slots


def given(rank, dtype, shape):
    """What rank `rank` brings: numbers that 16-bit floats add without rounding."""
    numbers = np.random.default_rng(rank).integers(0, 9, shape)
    return ag.tensor(numbers, dtype=dtype)


def operations():
    """{what was done: what came out}."""
    rank, size, out = distributed.rank(), distributed.size(), {}
    for dtype in DTYPES:
        for shape in SIZES if dtype == "float32" else SIZES[:3]:
            for op in ("sum", "mean", "max", "min")[:: 1 if dtype.startswith(("float", "bfloat")) else 2]:
                t = given(rank, dtype, shape)
                assert distributed.all_reduce(t, op) is t and t._version == 1
                out[op, dtype, shape] = digest(t) if t.numel() > 100 else t
            t = given(rank, dtype, shape)
            out["broadcast", dtype, shape] = digest(distributed.broadcast(t, size - 1))
            out["all_gather", dtype, shape] = [digest(each) for each in distributed.all_gather(given(rank, dtype, shape))]
    strided = given(rank, "float32", (4, 3)).T
    out["strided"] = distributed.all_reduce(strided).contiguous()
    group = distributed.backend.backend()
    arrays = [np.full(10_000, rank + i, np.float64) for i in range(6)]
    requests = [group.start_all_reduce(a) for a in arrays[:-1]]
    group.all_reduce(arrays[-1])  # after those that were started
    assert all(r._future.done() for r in requests)
    for r in requests:
        r.wait()
    out["started"] = [a[::5000].tolist() for a in arrays]
    uneven = np.random.default_rng(rank).standard_normal(1000).astype(np.float32)
    group.all_reduce(uneven)
    out["bits"] = uneven.tobytes()
    distributed.init("process")  # says nothing: it is so already
    out["where"] = (os.getpid(), rank, size, distributed.is_initialized(), os.environ["OPENBLAS_NUM_THREADS"])
    out["stats"] = distributed.stats()
    return out


def digest(t):
    """A few numbers that say what a large tensor holds."""
    values = t.float().numpy().astype(np.float64).reshape(-1)
    return [values.size, values.sum(), (values * np.arange(values.size)).sum()]


def refused():
    """What every rank refuses, and goes on from: the texts."""
    rank, texts = distributed.rank(), []

    def disagree():
        distributed.all_reduce(ag.zeros(3 + rank))

    def nothing():
        with replica().sync(0):
            pass

    def partly():
        model = replica()
        with model.sync(1, 4):
            model.module.last.weight.sum().backward(inputs=[model.module.last.weight])

    for wrong in (disagree, lambda: distributed.DataParallel(nn.Linear(2, 2 + rank)), nothing, partly):
        try:
            wrong()
        except (RuntimeError, ValueError) as error:
            texts.append(str(error))
    return texts


def everything():
    """All cases and operations: a group of processes is started once for all."""
    return {name: case() for name, case in CASES.items()} | {"operations": operations(), "refused": refused()}


def on(device):
    """The same training on a device in float32, and an operation on its tensors."""
    t = ag.tensor([1.0, 2.0, 3.0], device=device) * (distributed.rank() + 1)
    distributed.all_reduce(t)
    model = replica(lambda: Net(ag.float32).to(device), bucket_bytes=100)
    stepper = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for x, y, total in batches((5, 1, 4), np.float32):
        stepper.zero_grad()
        with model.sync(len(x), total):
            if len(x):
                mse(model(x.to(device)), y.to(device)).backward()
        stepper.step()
    return {"sum": t.cpu().numpy(), "device": str(t.device), **weights(model.cpu())}


on_wgpu = partial(on, "wgpu")


# --- for dp_train ---


class NotingLoss:
    """mse, which notes who saw how many samples; and kills its process when `fatal` is there, after so many calls."""

    def __init__(self, folder, fatal=None, after=0):
        self.folder, self.fatal, self.after, self.calls = folder, fatal, after, 0

    def __call__(self, y, target):
        with open(self.folder / f"{distributed.rank()}.txt", "a") as file:
            file.write(f"{os.getpid()} {len(target)}\n")
        self.calls += 1
        if self.fatal is not None and self.calls > self.after and distributed.rank() == 1 and self.fatal.exists():
            self.fatal.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return mse(y, target)


def numbers(count=21, dtype=np.float64):
    """Inputs and targets for Net."""
    draw = np.random.default_rng(3)
    return draw.standard_normal((count, 6)).astype(dtype), draw.standard_normal((count, 3)).astype(dtype)
