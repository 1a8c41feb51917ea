"""What has to hold on every backend. The same on all ranks, which call the checks in turn:

mpiexec -n 2 python tests/distributed_checks.py [names], or spawn(run, 2, (names,)) from a test.
"""

import os
import signal
import sys
import time
from pathlib import Path

import distributed_workers as workers
import numpy as np
import pytest
from helpers import assert_raises
from sharded_checks import (
    bits,
    equal_on_all_ranks,
    sharded_refusals,
    sharded_state_is_shared_out,
    sharded_steps_are_the_optimizers_own,
)

import autograd as ag
from autograd import distributed, dtypes, nn, optim
from autograd.distributed import compression, mpi
from autograd.distributed.backend import backend, use

# -- operations -----------------------------------------------------------------------------------------


def of_rank(rank, kind, shape):
    """Some numbers of a dtype, others on each rank."""
    values = np.random.default_rng(rank).standard_normal(shape) * 5
    if kind.rank < 2:
        return np.array(np.abs(values)).astype(kind.numpy)
    return dtypes.converted(np.array(values), kind.numpy)


def operations(pieces=1 << 14):
    """All dtypes, several shapes, more than one piece: sums, copies and gathered arrays are what they should be."""
    group, whole = backend(), mpi._PIECE
    rank, size = distributed.rank(), distributed.size()
    assert distributed.local_rank() == rank  # all are on one machine
    mpi._PIECE = pieces
    for kind in dtypes.ALL:
        for shape in ((), (0,), (1,), (33, 5), (10_007,)):
            theirs = [of_rank(r, kind, shape) for r in range(size)]
            total = theirs[rank].copy()
            group.all_reduce(total)
            if kind in dtypes.SHORT:
                wide = [dtypes.converted(t, np.dtype(np.float32)) for t in theirs]
                assert total.tobytes() == dtypes.converted(sum(wide[1:], wide[0]), kind.numpy).tobytes(), (kind, shape)
            elif kind.rank == 2:
                np.testing.assert_allclose(total, np.sum(theirs, 0), rtol=16 * dtypes.limits(kind).eps, atol=64 * dtypes.limits(kind).eps)
            else:
                assert (total == np.sum(theirs, 0, dtype=kind.numpy)).all(), (kind, shape)
            assert len({a.tobytes() for a in group.all_gather(total)}) == 1, (kind, shape)
            found = group.all_gather(theirs[rank])
            assert [a.tobytes() for a in found] == [t.tobytes() for t in theirs] and found[0].shape == shape
            copy = theirs[rank].copy()
            group.broadcast(copy, size - 1)
            assert copy.tobytes() == theirs[-1].tobytes(), (kind, shape)
    mpi._PIECE = whole


def sums_have_the_same_bits_on_all_ranks():
    """Whatever algorithm the size of the array selects."""
    for kind in (np.float32, np.float64):
        for count in (1, 7, 1000, 65_537, 262_147):
            values = np.random.default_rng(backend().rank).standard_normal(count).astype(kind)
            backend().all_reduce(values)
            digest = ag.from_numpy(values)
            assert equal_on_all_ranks([digest]), (kind, count)


def it_goes_on_while_the_program_computes():
    """What was started ends although nothing waits for it, and nothing else calls the backend."""
    values = np.ones(300_000, np.float32)
    request = backend().start_all_reduce(values)
    work, deadline = np.ones((100, 100)), time.monotonic() + 60
    while not request._future.done():
        work = work @ work * 1e-2
        assert time.monotonic() < deadline, "no progress"
    request.wait()
    assert (values == backend().size).all()


# -- data parallel --------------------------------------------------------------------------------------


def net(kind=ag.float64):
    ag.manual_seed(3)
    layers = [nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3)]
    return nn.Sequential(*layers).to(kind)


def shares(step, total):
    """Where each rank's share of a batch begins and ends: uneven, and empty now and then."""
    size = backend().size
    cuts = np.random.default_rng(step).integers(0, total + 1, size - 1)
    if step % 4 == 0:
        cuts[:] = total if step % 8 else 0  # one rank has all, the first or the last
    edges = [0, *sorted(cuts.tolist()), total]
    return edges[backend().rank : backend().rank + 2]


def batch(step):
    random = np.random.default_rng(100 + step)
    total = 5 + step % 7
    return ag.tensor(random.standard_normal((total, 6))), ag.tensor(random.standard_normal((total, 3)))


def make_optimizer(parameters):
    return optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=0.01)


def sharded(parameters):
    return distributed.ShardedOptimizer(parameters, optim.SGD, lr=0.05, momentum=0.9, weight_decay=0.01)


def train_parallel(make, steps=20, **options):
    model = distributed.DataParallel(net(), **options)
    optimizer = make(model.parameters())
    for step in range(steps):
        x, y = batch(step)
        first, last = shares(step, len(x))
        optimizer.zero_grad()
        with model.sync(samples=last - first):
            if first < last:
                nn.functional.mse_loss(model(x[first:last]), y[first:last]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        assert equal_on_all_ranks([p.grad for p in model.parameters()]), step
    return list(model.parameters())


def train_alone(steps=20):
    model = net()
    optimizer = make_optimizer(model.parameters())
    for step in range(steps):
        x, y = batch(step)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
    return list(model.parameters())


def data_parallel_is_one_process_with_the_whole_batch():
    """To 1e-10 in float64 over 20 steps with momentum, decay, clipping, uneven and empty shares, in one bucket and in many."""
    alone = train_alone()
    moved = max(float((p - q).abs().amax()) for p, q in zip(alone, net().parameters(), strict=True))
    assert moved > 0.01
    for bucket_bytes in (200, 1 << 20):
        together = train_parallel(make_optimizer, bucket_bytes=bucket_bytes)
        assert equal_on_all_ranks(together)
        for p, q in zip(together, alone, strict=True):
            np.testing.assert_allclose(p._host(), q._host(), rtol=0, atol=1e-10)
    assert bits(train_parallel(sharded)) == bits(together), "the sharded optimizer makes other steps"


def all_cases_are_one_process_with_whole_batches():
    """What test_distributed.py asks of processes: accumulated gradients, hooks, frozen and unused layers, SyncBatchNorm, …"""
    group = backend()
    for name, case in workers.CASES.items():
        together = case()
        assert equal_on_all_ranks([ag.from_numpy(together[k]) for k in sorted(together)]), name
        if name == "unused on one rank" and group.size != 2:
            continue  # it is about two ranks
        use(None)
        alone = case()
        use(group)
        assert together.keys() == alone.keys(), name
        for k, value in alone.items():  # bfloat16: each rank's gradients are rounded before they are averaged
            np.testing.assert_allclose(together[k], value, rtol=0, atol=0.02 if name == "bfloat16" else 1e-10, err_msg=f"{name}: {k}")


# -- compression ----------------------------------------------------------------------------------------


def compressed_sums_keep_their_bound():
    """The error that compression.Float16 states, for gradients of any size; what is no gradient is exact."""
    group = backend()
    rank, size = group.rank, group.size
    for kind, factors in ((np.float32, (1, 1e-30, 1e30, 1e-43)), (np.float64, (1, 1e-300, 1e300))):
        for factor in factors:
            fall = np.exp(-np.arange(5000) / 150) * factor
            theirs = [(np.random.default_rng(r).standard_normal(5000) * fall).astype(kind) for r in range(size)]
            flat = np.concatenate([theirs[rank], np.array([1, rank, 0], kind)])
            compression.Float16().start(group, flat, 5000).wait()
            wide = [t.astype(np.longdouble) for t in theirs]
            want, most = sum(wide), max(np.abs(w).max() for w in wide)
            bound = 1.01 * 2.0**-11 * (sum(map(np.abs, wide)) + np.abs(want)) + (size + 1) ** 2 * most * 2.0**-38
            assert (np.abs(flat[:5000] - want) <= bound + np.finfo(kind).smallest_subnormal).all(), (kind, factor)
            assert flat[5000:].tolist() == [size, size * (size - 1) / 2, 0]
    flat = np.full(3, 0.9999, np.float32)  # the largest everywhere: the sum must not leave float16
    compression.Float16().start(group, flat, 3).wait()
    np.testing.assert_allclose(flat, 0.9999 * size, rtol=1e-3)
    flat = np.array([1, np.inf if rank == 0 else 2, np.nan], np.float32)
    compression.Float16().start(group, flat, 3).wait()
    assert np.isinf(flat[1]) and np.isnan(flat[2])
    assert_raises(ValueError, "compress is 'float16' or None; got 'int8'", lambda: distributed.DataParallel(net(), compress="int8"))


def compression_halves_the_bytes_and_trains():
    """Counted in float32; 20 steps end within a thousandth of those without, the same on all ranks."""
    moved, gradients = {}, {}
    for compress in (None, "float16"):
        model = distributed.DataParallel(net(ag.float32), compress=compress)
        before = distributed.stats()["bytes"]
        with model.sync(samples=4, total=4 * backend().size):
            x, y = (t.float() for t in batch(backend().rank))
            nn.functional.mse_loss(model(x[:4]), y[:4]).backward()
        moved[compress] = distributed.stats()["bytes"] - before
        gradients[compress] = np.concatenate([p.grad.numpy().reshape(-1) for p in model.parameters()])
    count = gradients[None].size
    assert moved[None] >= 4 * count and moved["float16"] <= 2 * count + 64, moved
    np.testing.assert_allclose(gradients["float16"], gradients[None], rtol=0, atol=2e-3 * np.abs(gradients[None]).max())
    assert (gradients["float16"] != gradients[None]).any()
    exact, rounded = train_parallel(make_optimizer), train_parallel(make_optimizer, compress="float16")
    assert equal_on_all_ranks(rounded) and bits(rounded) != bits(exact)
    for p, q in zip(rounded, exact, strict=True):
        np.testing.assert_allclose(p._host(), q._host(), rtol=0, atol=1e-3)


# -- checkpoints ------------------------------------------------------------------------------------------


def train_with_checkpoints(path, epochs=4, kill_at=None):
    """A training that saves after each epoch, and goes on from where the file ends, if there is one; at step kill_at rank 1 dies."""
    random = np.random.default_rng(0)
    inputs, targets = ag.tensor(random.standard_normal((60, 6))), ag.tensor(random.standard_normal((60, 3)))
    model = distributed.DataParallel(net())
    optimizer = distributed.ShardedOptimizer(model.parameters(), optim.Adam, lr=0.01)
    sampler, start, steps = distributed.ShardedSampler(inputs, 9), 0, 0
    if path.exists():
        saved = ag.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        start = saved["epoch"]
    distributed.barrier()  # all have read it
    for epoch in range(start, epochs):
        sampler.set_epoch(epoch)
        for pick, total in zip(sampler, sampler.totals, strict=True):
            steps += 1
            if steps == kill_at and distributed.rank() == 1:
                path.with_suffix(".killed").write_text(str(time.time()))
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.zero_grad()
            with model.sync(len(pick), total):
                nn.functional.mse_loss(model(inputs[pick]), targets[pick]).backward()
            optimizer.step()
        distributed.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}, path)
    return list(model.parameters())


def killed_in_the_third_epoch(folder):
    """Does not return."""
    train_with_checkpoints(Path(folder, "broken"), kill_at=17)


def a_restart_goes_on_exactly(folder):
    """From what killed_in_the_third_epoch() left: the same weights as those of a training that nobody killed."""
    assert ag.load(f"{folder}/broken")["epoch"] == 2
    assert bits(train_with_checkpoints(Path(folder, "broken"))) == bits(train_with_checkpoints(Path(folder, "whole")))


# -- files and progress ---------------------------------------------------------------------------------


def saving_is_rank_0s(folder):
    """Its values are in the file when anybody goes on; its errors are everybody's, and leave the old file."""
    path = f"{folder}/saved.safetensors"
    distributed.save({"rank": backend().rank, "w": ag.full((2,), backend().rank)}, path)
    found = ag.load(path)
    assert found["rank"] == 0 and found["w"].tolist() == [0, 0]
    distributed.barrier()  # all have read it
    kind = TypeError if backend().rank == 0 else RuntimeError
    assert_raises(kind, "which cannot be saved", lambda: distributed.save({"f": len}, path))
    assert ag.load(path)["rank"] == 0
    kind = FileNotFoundError if backend().rank == 0 else RuntimeError
    assert_raises(kind, "nowhere", lambda: distributed.save({}, f"{folder}/nowhere/x"))


def progress_is_rank_0s(folder):
    """It shows itself there, and counts everywhere."""
    with open(f"{folder}/progress{backend().rank}", "w+") as out:
        bar = distributed.progress(range(3), file=out)
        assert list(bar) == [0, 1, 2]
        bar.set_postfix(loss=1)
        out.seek(0)
        assert bool(out.read()) == (backend().rank == 0)


def disagreements_are_named():
    """Shapes of as many bytes, sizes, dtypes, operations, sources: one error on every rank, from which they go on."""
    one = distributed.rank() % 2
    size = distributed.size()
    ones = ", ".join(map(str, range(1, size, 2)))
    rows = [
        (lambda: distributed.all_reduce(ag.zeros(*((2, 3), (3, 2))[one])), "all_reduce of float32 (2, 3), 24 bytes", "all_reduce of float32 (3, 2), 24 bytes"),
        (lambda: distributed.all_reduce(ag.zeros(5 + 300_000 * one)), "all_reduce of float32 (5,), 20 bytes", "all_reduce of float32 (300005,), 1200020 bytes"),
        (lambda: distributed.all_gather(ag.zeros(0 if one else 4)), "all_gather of float32 (4,), 16 bytes", "all_gather of float32 (0,), 0 bytes"),
        (lambda: distributed.all_reduce(ag.zeros(2, dtype=(ag.float32, ag.int32)[one])), "all_reduce of float32 (2,), 8 bytes", "all_reduce of int32 (2,), 8 bytes"),
        (lambda: distributed.broadcast(ag.zeros(()), one), "broadcast of float32 (), 4 bytes, from rank 0", "broadcast of float32 (), 4 bytes, from rank 1"),
        (lambda: distributed.barrier() if one else distributed.all_gather(ag.zeros(1)), "all_gather of float32 (1,), 4 bytes", "barrier"),
    ]  # fmt: skip
    for call, zeroth, first in rows:
        with pytest.raises(RuntimeError, match="the ranks do different things") as caught:
            call()
        text = str(caught.value)
        assert zeroth in text and first in text and f": {first}. All call" in text and f" {ones}: " in text, text
        assert float(distributed.all_reduce(ag.ones(()))) == size
    model = nn.Linear(2, 2)
    wider = nn.Linear(2, 3) if one else model
    rows = [
        (lambda: distributed.DataParallel(wider), "weight (2, 2) float32", "weight (3, 2) float32"),
        (lambda: distributed.DataParallel(model, compress="float16" if one else None), "compress=None", "compress='float16'"),
        (lambda: distributed.DataParallel(model, bucket_bytes=8 if one else 1000), "bucket 0 (9,)", "bucket 0 (4,)"),
        (lambda: distributed.ShardedOptimizer(wider.parameters(), optim.Adam), "parameter 0 (2, 2) float32", "parameter 0 (3, 2) float32"),
        (lambda: distributed.ShardedOptimizer(model.parameters(), (optim.Adam, optim.SGD)[one], lr=0.1), ": Adam", ": SGD"),
    ]  # fmt: skip
    for call, zeroth, first in rows:
        with pytest.raises(ValueError, match="differ from rank 0's") as caught:
            call()
        assert zeroth in str(caught.value) and first in str(caught.value), str(caught.value)


CHECKS = [
    operations, sums_have_the_same_bits_on_all_ranks, it_goes_on_while_the_program_computes,
    data_parallel_is_one_process_with_the_whole_batch, all_cases_are_one_process_with_whole_batches,
    compressed_sums_keep_their_bound, compression_halves_the_bytes_and_trains, sharded_steps_are_the_optimizers_own,
    sharded_state_is_shared_out, sharded_refusals, saving_is_rank_0s, progress_is_rank_0s, disagreements_are_named,
]  # fmt: skip
PROCESS = CHECKS[5:]  # what test_distributed.py does not ask of processes


def run(folder, checks=None):
    """The checks; the names of those that passed, which is all unless an error ends the program."""
    passed = []
    for check in CHECKS if checks is None else checks:
        started = time.perf_counter()
        check(folder) if check.__code__.co_varnames[:1] == ("folder",) else check()
        distributed.barrier()
        passed.append(check.__name__)
        if distributed.rank() == 0:
            print(f"passed {check.__name__} in {time.perf_counter() - started:.1f} s", flush=True)
    return passed


if __name__ == "__main__":
    distributed.init("mpi")
    run(sys.argv[1], [globals()[name] for name in sys.argv[2:]] or None)
    distributed.finish()
