"""Data parallel on one machine: processes that train as one."""

import os
import sys
import threading
import types
from functools import cache, partial, reduce

import distributed_workers as workers
import numpy as np
import pytest
from distributed_leaks import nothing_stays  # noqa: F401  (a fixture of every test)
from hypothesis import given
from hypothesis import strategies as st

import autograd as ag
from autograd import distributed, nn


@cache
def ranks(size):
    """What each rank makes of all cases: one group of each size serves all tests."""
    return distributed.spawn(workers.everything, size)


@cache
def reference(case):
    """What one process alone makes of a case."""
    return workers.CASES[case]()


# --- the same numbers as one process ---


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("case", workers.CASES)
def test_ranks_train_as_one_process_with_whole_batches(case, size):
    found, expected = [each[case] for each in ranks(size)], reference(case)
    tolerance = 0.02 if case == "bfloat16" else 1e-10  # a rank's own gradients in bfloat16 have 8 bits
    for name, value in expected.items():
        np.testing.assert_allclose(found[0][name], value, atol=tolerance, rtol=tolerance, err_msg=name)
    for each in found:
        assert each.keys() == expected.keys()
        assert all(each[name].tobytes() == value.tobytes() for name, value in found[0].items())


def test_the_cases_are_not_blind_to_what_they_test():
    """Without clipping, with equal weights for unequal shards, or without statistics of all, the numbers are others."""
    plain = reference("sgd")
    for case in ("momentum, clipping, decay", "adamw, counts asked for", "synchronised norm"):
        assert np.abs(reference(case)["first.weight"] - plain["first.weight"]).max() > 1e-4
    x, y = (ag.from_numpy(a) for a in workers.numbers(7))
    net = workers.replica()
    whole, halves = [], []
    for parts, into in (((slice(0, 7),), whole), ((slice(0, 4), slice(4, 7)), halves)):
        net.zero_grad()
        for part in parts:
            (workers.mse(net(x[part]), y[part]) / len(parts)).backward()
        into.append(net.module.last.weight.grad.numpy().copy())
    assert np.abs(whole[0] - halves[0]).max() > 1e-4


# --- operations ---


def expected_of(op, dtype, shape, size):
    """The operation in NumPy: on what all ranks bring, in float64."""
    brought = [workers.given(r, dtype, shape) for r in range(size)]
    values = [np.asarray(t.float().numpy(), np.float64) for t in brought]
    if op == "all_gather":
        return [workers.digest(t) for t in brought]
    if op == "broadcast":
        return workers.digest(brought[-1])
    result = {"sum": sum(values), "mean": sum(values) / size, "max": reduce(np.maximum, values),
              "min": reduce(np.minimum, values)}[op]  # fmt: skip
    return workers.digest(ag.tensor(result, dtype=dtype)) if result.size > 100 else ag.tensor(result, dtype=dtype)


@pytest.mark.parametrize("size", [2, 4])
def test_operations_on_tensors_of_all_types_and_sizes(size):
    done = [each["operations"] for each in ranks(size)]
    keys = [key for key in done[0] if isinstance(key, tuple)]
    assert len(keys) > 100
    for key in keys:
        expected = expected_of(*key, size)
        for each in done:
            if isinstance(expected, list):
                assert each[key] == expected, key
            else:
                assert each[key].dtype == expected.dtype and each[key].shape == expected.shape
                np.testing.assert_allclose(each[key].float().numpy(), expected.float().numpy(), rtol=1e-7, err_msg=str(key))


@pytest.mark.parametrize("size", [2, 4])
def test_operations_keep_their_order_and_give_the_same_bits(size):
    done = [each["operations"] for each in ranks(size)]
    assert len({each["bits"] for each in done}) == 1
    strided = sum(workers.given(r, "float32", (4, 3)).numpy() for r in range(size)).T
    for rank, each in enumerate(done):
        np.testing.assert_array_equal(each["strided"], strided)
        assert each["started"] == [[float(sum(r + i for r in range(size)))] * 2 for i in range(6)]
        pid, own_rank, own_size, initialized, threads = each["where"]
        assert (own_rank, own_size, initialized, threads) == (rank, size, True, "1") and pid != os.getpid()
        assert each["stats"]["calls"] > 100 and each["stats"]["bytes"] > 4 * 2_100_000 and each["stats"]["seconds"] > 0
    assert len({each["where"][0] for each in done}) == size


@pytest.mark.parametrize("size", [2, 4])
def test_ranks_that_disagree_are_told(size):
    for each in ranks(size):
        different, unlike, nothing, partly = each["refused"]
        assert "the ranks do different things: rank 0: all_reduce of float32 (3,), 12 bytes; rank 1: all_reduce of float32 (4,), 16 bytes" in different
        assert f"those of ranks {list(range(1, size))} differ from rank 0's: rank 0: weight (2, 2) float32; rank 1: weight (3, 2) float32" in unlike
        assert "no rank has samples" in nothing
        assert "takes no inputs= or create_graph=True" in partly


def test_one_process_alone_is_rank_0_of_1():
    t = ag.tensor([1.0, 2.0])
    assert distributed.all_reduce(t) is t and distributed.broadcast(t, 0) is t
    assert [each.tolist() for each in distributed.all_gather(t)] == [[1.0, 2.0]]
    distributed.barrier()
    distributed.init()
    assert distributed.is_initialized() and distributed.size() == 1
    with pytest.raises(RuntimeError, match="'local' is in use already"):
        distributed.init("mpi")
    distributed.finish()


def test_wrong_use_says_what_is_wrong():
    with pytest.raises(ValueError, match=r'backends are "local", "process" and "mpi"; got \'nccl\''):
        distributed.init("nccl")
    with pytest.raises(RuntimeError, match="start them with distributed"):
        distributed.init("process")
    with pytest.raises(TypeError, match="has no options"):
        distributed.init("local", port=1)
    with pytest.raises(ValueError, match="op is one of sum, mean, max, min; got 'median'"):
        distributed.all_reduce(ag.zeros(2), "median")
    with pytest.raises(TypeError, match="mean is for floating point; got"):
        distributed.all_reduce(ag.tensor([1]), "mean")
    with pytest.raises(TypeError, match="expected a Tensor; got list"):
        distributed.all_reduce([1.0])
    with pytest.raises(RuntimeError, match=r"lose its history; pass t.detach\(\)"):
        distributed.all_reduce(ag.ones(2, requires_grad=True) * 2)
    with pytest.raises(ValueError, match="src is a rank from 0 to 0; got 1"):
        distributed.broadcast(ag.zeros(2), 1)
    with pytest.raises(RuntimeError, match="only a process that spawn"):
        distributed.report(1)
    for options in ({"size": 0}, {"size": True}, {"size": 1, "threads": 0}, {"size": 1, "timeout": -1}):
        name, value = list(options.items())[-1]
        with pytest.raises(ValueError, match=rf"{name} is a positive number( of processes)?; got {value}"):
            distributed.spawn(workers.operations, **options)
    with pytest.raises(TypeError, match="args is a tuple"):
        distributed.spawn(workers.batches, 1, 5)
    with pytest.raises(TypeError, match=r"\[spawn\] function is sent to other processes .* Lambdas"):
        distributed.spawn(lambda: None, 2)
    with pytest.raises(TypeError, match=r"\[spawn\] args\[1\] is sent"):
        distributed.spawn(workers.batches, 2, (0, threading.Lock()))
    with pytest.raises(TypeError, match="expected a Module; got dict"):
        distributed.DataParallel({})
    with pytest.raises(ValueError, match="bucket_bytes is a positive number; got 0"):
        distributed.DataParallel(nn.Linear(2, 2), bucket_bytes=0)
    model = distributed.DataParallel(nn.Linear(2, 2))
    for samples, total in ((-1, None), (3, 2), (0, 0)):
        with pytest.raises(ValueError, match=f"got {samples} and {total}"):
            model.sync(samples, total)
    model.module.late = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="other parameters than when DataParallel was made"):
        model.sync()


def test_a_function_of_a_notebook_is_refused_before_anything_starts(monkeypatch):
    """New processes have no such __main__; what they say about it goes where a notebook's user does not look."""
    prompt = types.ModuleType("__main__")
    exec("def work(): pass", vars(prompt))
    monkeypatch.setitem(sys.modules, "__main__", prompt)
    for function in (prompt.work, partial(partial(prompt.work))):
        with pytest.raises(TypeError, match="function was written in a notebook, at a prompt or with -c"):
            distributed.spawn(function, 2)


def test_a_replica_is_its_module():
    net = workers.Net()
    model = distributed.DataParallel(net)
    assert model.module is net and model.state_dict().keys() == net.state_dict().keys()
    assert model.load_state_dict(net.state_dict()) == ([], [])
    x = ag.ones(2, 6, dtype=ag.float64)
    np.testing.assert_array_equal(model(x).detach(), net(x).detach())
    assert not model.eval().module.training


def test_a_converted_module_keeps_what_is_no_norm_and_shares_what_is():
    norm = nn.BatchNorm1d(3)
    model = nn.Sequential(norm, nn.Linear(3, 3), nn.Sequential(norm, nn.LayerNorm(3)))
    assert distributed.SyncBatchNorm.convert_sync_batchnorm(model) is model
    assert isinstance(model[0], distributed.SyncBatchNorm) and model[2][0] is model[0]
    assert isinstance(model[1], nn.Linear) and isinstance(model[2][1], nn.LayerNorm)
    assert distributed.convert_sync_batchnorm(model[0]) is model[0]
    with pytest.raises(ValueError, match=r"more than one value a channel; got \(1, 3\)"):
        model(ag.ones(1, 3))


def test_two_ranks_share_a_gpu(wgpu):
    first, second = distributed.spawn(workers.on_wgpu, 2)
    assert first["device"] == "wgpu:0" and first["sum"].tolist() == [3.0, 6.0, 9.0]
    expected = workers.on("cpu")
    for name in expected.keys() - {"sum", "device"}:
        assert first[name].tobytes() == second[name].tobytes()
        np.testing.assert_allclose(first[name], expected[name], atol=1e-5, err_msg=name)


# --- gradients that arrive while backward runs ---


def test_arrivals_come_in_backwards_order_before_they_are_added_up():
    from autograd.hooks import Arrivals

    first, last, loose = (ag.ones(2, requires_grad=True) for _ in range(3))
    seen = []
    with Arrivals([first, last, loose], lambda p, g: seen.append((p, g if g is None else g.tolist(), p.grad))):
        ((first * 3 + first).tanh() * last).sum().backward()
    assert [p is q for (p, _, _), q in zip(seen, (loose, last, first), strict=True)] == [True] * 3
    assert all(grad is None for _, _, grad in seen)
    assert [g for _, g, _ in seen] == [None, last.grad.tolist(), first.grad.tolist()]
    (first * 2).sum().backward()
    assert len(seen) == 3


# --- who gets what ---


@given(st.integers(0, 40), st.integers(1, 9), st.integers(1, 5), st.booleans(), st.integers(0, 3))
def test_shares_are_each_sample_once_and_differ_by_one_at_most(count, batch, size, shuffle, epoch):
    data = list(range(count))
    samplers = [distributed.ShardedSampler(data, batch, shuffle, 5, rank=r, size=size) for r in range(size)]
    for sampler in samplers:
        sampler.set_epoch(epoch)
        assert len(sampler) == len(list(sampler)) == len(sampler.totals)
    seen = []
    for total, *shares in zip(samplers[0].totals, *samplers, strict=True):
        sizes = [len(s) for s in shares]
        assert sum(sizes) == total and sizes == sorted(sizes, reverse=True) and sizes[0] - sizes[-1] <= 1
        seen += [i for s in shares for i in s]
    assert sorted(seen) == data and (shuffle or seen == data)


def test_epochs_have_orders_of_their_own_whatever_was_drawn():
    sampler = distributed.ShardedSampler(range(50), 50)
    first = next(iter(sampler))
    ag.rand(3)
    assert next(iter(sampler)) == first
    sampler.set_epoch(1)
    assert next(iter(sampler)) != first
    with pytest.raises(ValueError, match="got rank 2 of 2"):
        distributed.ShardedSampler(range(3), 1, rank=2, size=2)
    with pytest.raises(ValueError, match="positive integer; got 0"):
        distributed.ShardedSampler(range(3), 0)


def test_a_loader_takes_the_sampler():
    x = ag.arange(7)
    sampler = distributed.ShardedSampler(x, 3, shuffle=False, rank=1, size=2)
    shares = [batch.tolist() for (batch,) in ag.data.DataLoader(ag.data.TensorDataset(x), batch_sampler=sampler)]
    assert shares == [[2], [5], []] and sampler.totals == [3, 3, 1]
