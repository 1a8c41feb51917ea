"""Datasets, samplers and the loader."""

import collections
import os
import sys
import threading
import time
import traceback

import numpy as np
import pytest
from helpers import array, assert_close, assert_raises

import autograd as ag
from autograd import data
from autograd.data import DataLoader

Pair = collections.namedtuple("Pair", "x y")


class Numbers(data.Dataset):
    """Sample i is (i, its square)."""

    def __init__(self, size=10):
        self.size = size

    def __getitem__(self, i):
        return ag.tensor([float(i)]), i * i

    def __len__(self):
        return self.size


class Broken(Numbers):
    def __getitem__(self, i):
        if i == 5:
            raise LookupError("no sample 5")
        return super().__getitem__(i)


class Draws(Numbers):
    def __getitem__(self, i):
        return ag.rand(2) + i


class Stream(data.IterableDataset):
    """0 … 9, shared out among the workers."""

    def __iter__(self):
        info = data.get_worker_info()
        return iter(range(10) if info is None else range(info.id, 10, info.num_workers))


class Slow(Numbers):
    def __getitem__(self, i):
        time.sleep(0.3)
        return i


def values(batches):
    return [array(b[1]).tolist() for b in batches]


# -- datasets -------------------------------------------------------------------------------------------


def test_tensor_dataset_and_subset(device):
    x, y = ag.arange(12, device=device).reshape(6, 2), ag.arange(6, device=device)
    whole = data.TensorDataset(x, y)
    part = data.Subset(whole, [4, 0, 5])
    assert len(whole) == 6 and len(part) == 3 and array(part[1][0]).tolist() == [0, 1]
    assert values([part[0]]) == [4]
    fast = list(DataLoader(part, batch_size=2))
    slow = list(DataLoader(part, batch_size=2, collate_fn=lambda batch: data.default_collate(batch)))
    for a, b in zip(fast, slow, strict=True):
        assert type(a) is type(b) is list
        assert all(p.device == q.device and p.dtype is q.dtype and (array(p) == array(q)).all() for p, q in zip(a, b, strict=True))
    assert_raises(ValueError, "first size", lambda: data.TensorDataset(x, y[:3]))
    assert_raises(ValueError, "first size", lambda: data.TensorDataset())


def test_concat_and_chain():
    both = Numbers(3) + Numbers(2)
    assert isinstance(both, data.ConcatDataset) and both.cumulative_sizes == [3, 5]
    assert [both[i][1] for i in (0, 2, 3, 4, -1, -5)] == [0, 4, 0, 1, 1, 0]
    for i in (5, -6):
        assert_raises(IndexError, "out of range", lambda i=i: both[i])
    assert_raises(ValueError, "no datasets", lambda: data.ConcatDataset([]))
    assert_raises(TypeError, "ChainDataset", lambda: data.ConcatDataset([Stream()]))
    assert list(Stream() + Stream()) == [*range(10), *range(10)]
    assert_raises(NotImplementedError, "__getitem__", lambda: data.Dataset()[0])
    assert_raises(NotImplementedError, "__iter__", lambda: iter(data.IterableDataset()))


def test_random_split():
    ag.manual_seed(3)
    parts = data.random_split(Numbers(10), [7, 3])
    assert [len(p) for p in parts] == [7, 3]
    assert sorted(i for p in parts for i in p.indices) == list(range(10))
    assert [len(p) for p in data.random_split(Numbers(11), [0.5, 0.3, 0.2])] == [6, 3, 2]
    own = [data.random_split(Numbers(10), [7, 3], ag.Generator().manual_seed(1))[0].indices for _ in range(2)]
    assert own[0] == own[1] != parts[0].indices
    assert_raises(ValueError, "add up to 10", lambda: data.random_split(Numbers(10), [7, 2]))
    assert_raises(ValueError, "[0, 1]", lambda: data.random_split(Numbers(10), [1.5, -0.5]))
    for lengths in ([-1, 11], [2.5, 7.5]):
        assert_raises(ValueError, "whole numbers from 0 on", lambda lengths=lengths: data.random_split(Numbers(10), lengths))


# -- samplers -------------------------------------------------------------------------------------------


def test_samplers():
    ag.manual_seed(0)
    source = range(8)
    assert list(data.SequentialSampler(source)) == list(source)
    first, second = list(data.RandomSampler(source)), list(data.RandomSampler(source))
    assert sorted(first) == sorted(second) == list(source) and first != second
    ag.manual_seed(0)
    assert list(data.RandomSampler(source)) == first
    more = list(data.RandomSampler(source, num_samples=20))
    assert len(more) == 20 and sorted(more[:8]) == sorted(more[8:16]) == list(source)
    drawn = list(data.RandomSampler(source, replacement=True, num_samples=50))
    assert len(drawn) == 50 and set(drawn) <= set(source)
    assert sorted(data.SubsetRandomSampler([5, 3, 1])) == [1, 3, 5]
    assert list(data.RandomSampler([])) == []
    assert list(data.BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(data.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert [len(data.BatchSampler(range(5), 2, drop)) for drop in (True, False)] == [2, 3]


def test_weighted_sampler():
    ag.manual_seed(0)
    sampler = data.WeightedRandomSampler([1.0, 0.0, 3.0], 8000)
    counts = np.bincount(list(sampler), minlength=3) / 8000
    assert len(sampler) == 8000 and counts[1] == 0 and abs(counts[2] - 0.75) < 0.02
    firsts = [list(data.WeightedRandomSampler(ag.tensor([1.0, 0.0, 3.0]), 2, replacement=False)) for _ in range(2000)]
    assert all(sorted(f) == [0, 2] for f in firsts)
    assert abs(np.mean([f[0] == 2 for f in firsts]) - 0.75) < 0.04
    for text, arguments in (("as many weights", ([1.0, 0.0], 2, False)), ("weights are", ([-1.0, 2.0], 1)), ("positive", ([1.0], 0))):
        assert_raises(ValueError, text, lambda a=arguments: data.WeightedRandomSampler(*a))


# -- collate --------------------------------------------------------------------------------------------

COLLATED = [
    ([1, 2], ag.int64, [1, 2]),
    ([1.5, 2], ag.float64, [1.5, 2]),
    ([True, False], ag.bool, [True, False]),
    ([np.float32(1), np.float32(2)], ag.float32, [1, 2]),
    ([np.ones(2, np.int32), np.zeros(2, np.int32)], ag.int32, [[1, 1], [0, 0]]),
    ([ag.ones(2), ag.zeros(2)], ag.float32, [[1, 1], [0, 0]]),
]


@pytest.mark.parametrize(("batch", "dtype", "want"), COLLATED)
def test_collate(batch, dtype, want):
    got = data.default_collate(batch)
    assert got.dtype is dtype and array(got).tolist() == want


def test_collate_structures():
    assert data.default_collate(["a", "b"]) == data.default_collate(list(np.array(["a", "b"]))) == ["a", "b"]
    assert data.default_convert(np.str_("a")) == "a"
    got = data.default_collate([{"x": 1, "y": (2, "a")}, {"x": 3, "y": (4, "b")}])
    assert array(got["x"]).tolist() == [1, 3] and array(got["y"][0]).tolist() == [2, 4] and got["y"][1] == ["a", "b"]
    got = data.default_collate([Pair(1, 2.0), Pair(3, 4.0)])
    assert isinstance(got, Pair) and array(got.y).tolist() == [2, 4]
    assert_raises(ValueError, "same number of parts", lambda: data.default_collate([[1, 2], [3]]))
    assert_raises(TypeError, "got object", lambda: data.default_collate([object()]))
    kept = data.default_convert({"a": [np.ones(2), "b"], "p": Pair(np.int64(1), 2)})
    assert isinstance(kept["a"][0], ag.Tensor) and kept["a"][1] == "b" and kept["p"].y == 2


class TwoPart(Exception):
    """What does not pickle: its class wants more than its message."""

    def __init__(self, what, number):
        super().__init__(f"{what} {number}")


def fails_at(batch):
    if batch == [2]:
        raise TwoPart("sample", 2)


# -- the loader -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches(workers):
    loader = DataLoader(Numbers(), batch_size=4, num_workers=workers)
    assert len(loader) == 3
    batches = list(loader)
    assert values(batches) == [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]
    assert batches[0][0].shape == (4, 1)
    assert len(list(loader)) == 3 and len(list(zip(loader, loader, strict=True))) == 3
    loader = DataLoader(Numbers(), batch_size=4, num_workers=workers, drop_last=True)
    assert len(loader) == len(list(loader)) == 2
    singles = DataLoader(Numbers(), batch_size=None, num_workers=workers)
    assert len(singles) == 10 and [y for _, y in singles][:3] == [0, 1, 4]
    chosen = DataLoader(Numbers(), batch_sampler=[[1, 2], [3]], num_workers=workers)
    assert values(chosen) == [[1, 4], [9]] and len(chosen) == 2
    assert values(DataLoader(Numbers(), sampler=[3, 1], num_workers=workers)) == [[9], [1]]
    assert list(DataLoader(Numbers(4), batch_size=2, collate_fn=len, num_workers=workers)) == [2, 2]
    assert list(DataLoader(Numbers(0), batch_size=2, num_workers=workers)) == []


def test_shuffle_follows_the_seed():
    ag.manual_seed(7)
    loader = DataLoader(Numbers(), batch_size=3, shuffle=True)
    first, second = values(loader), values(loader)
    assert sorted(i for batch in first for i in batch) == [i * i for i in range(10)] and first != second
    ag.manual_seed(7)
    assert values(DataLoader(Numbers(), batch_size=3, shuffle=True)) == first
    ag.manual_seed(7)
    ahead = DataLoader(Numbers(), batch_size=3, shuffle=True, num_workers=2)
    assert [values(ahead), values(ahead)] == [first, second]
    own = [values(DataLoader(Numbers(), shuffle=True, generator=ag.Generator().manual_seed(1))) for _ in range(2)]
    assert own[0] == own[1]


def test_draws_do_not_depend_on_the_number_of_workers():
    found = []
    for workers in (1, 2, 3, 2):
        ag.manual_seed(5)
        found.append(np.concatenate([array(b) for b in DataLoader(Draws(), batch_size=2, shuffle=True, num_workers=workers)]))
    assert all((f == found[0]).all() for f in found)
    assert len(np.unique(found[0] % 1)) == 20


@pytest.mark.parametrize("workers", [0, 2])
def test_exceptions_arrive_in_turn(workers):
    got = []
    with pytest.raises(LookupError, match="no sample 5") as caught:
        for batch in DataLoader(Broken(), batch_size=2, num_workers=workers):
            got.append(batch)
    assert len(got) == 2 and type(caught.value) is LookupError
    assert "raise LookupError" in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_early_exit_leaves_no_threads(workers):
    before = threading.active_count()
    loader = DataLoader(Numbers(200), batch_size=2, num_workers=workers)
    for _ in range(5):
        for _ in loader:
            break
    iterator = iter(loader)
    next(iterator)
    del iterator
    iter(loader)  # never asked
    assert threading.active_count() == before


def test_streams():
    assert [array(b).tolist() for b in DataLoader(Stream(), batch_size=4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [array(b).tolist() for b in DataLoader(Stream(), batch_size=4, drop_last=True)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    shared = [array(b).tolist() for b in DataLoader(Stream(), batch_size=2, num_workers=3)]
    assert shared == [[0, 3], [1, 4], [2, 5], [6, 9], [7], [8]]
    assert list(DataLoader(Stream(), batch_size=None)) == list(range(10))
    assert_raises(TypeError, "without __len__", lambda: len(DataLoader(Stream())))


def test_worker_info_and_init():
    seen = []
    loader = DataLoader(Numbers(8), batch_size=2, num_workers=2, prefetch_factor=1,
                        worker_init_fn=lambda i: seen.append((i, data.get_worker_info().num_workers)))  # fmt: skip
    assert len(list(loader)) == 4 and sorted(seen) == [(0, 2), (1, 2)]
    assert data.get_worker_info() is None
    assert len(list(DataLoader(Numbers(8), worker_init_fn=fails_at))) == 8  # no worker, no call
    assert_raises(ValueError, "batch_size cannot be changed", lambda: setattr(loader, "batch_size", 4))


def test_prefetch_is_bounded():
    started = []

    class Watched(Numbers):
        def __getitem__(self, i):
            started.append(i)
            return i

    iterator = iter(DataLoader(Watched(100), num_workers=2, prefetch_factor=3))
    next(iterator)
    time.sleep(0.1)
    assert 1 < len(started) <= 7
    iterator.close()


def test_timeout():
    loader = DataLoader(Slow(2), num_workers=1, timeout=0.05)
    assert_raises(RuntimeError, "within 0.05 s", lambda: list(loader))


def test_device(device):
    for workers in (0, 2):
        batches = list(DataLoader(Numbers(), batch_size=5, num_workers=workers, device=device))
        assert all(t.device.type == device for batch in batches for t in batch)
        assert_close(batches[1][0], np.arange(5.0, 10)[:, None])
        assert values(batches)[0] == [0, 1, 4, 9, 16]
    (batch,) = DataLoader([1.5, 2.5], batch_size=2, device=device)
    assert batch.dtype is (ag.float64 if device == "cpu" else ag.float32)


def test_processes():
    """Spawned processes: same batches, the exception with its text, and none left behind."""
    plain = list(DataLoader(data.TensorDataset(ag.arange(6)), batch_size=2))
    found = list(DataLoader(data.TensorDataset(ag.arange(6)), batch_size=2, num_workers=1, multiprocessing_context="spawn"))
    assert [array(b[0]).tolist() for b in found] == [array(b[0]).tolist() for b in plain]
    with pytest.raises(IndexError) as caught:
        list(DataLoader(data.Subset([1, 2], [0, 1, 2]), num_workers=1, multiprocessing_context="spawn"))
    assert "in fetch" in str(caught.value.__cause__)
    with pytest.raises(RuntimeError, match=r"a worker raised TwoPart, which does not pickle:(.|\n)*sample 2"):
        list(DataLoader([0, 1, 2], num_workers=1, multiprocessing_context="fork", collate_fn=fails_at))


REFUSED = [
    ("exclude", {"shuffle": True, "sampler": [0]}),
    ("excludes", {"batch_sampler": [[0]], "batch_size": 2}),
    ("excludes", {"batch_sampler": [[0]], "drop_last": True}),
    ("no batches to drop", {"batch_size": None, "drop_last": True}),
    ("positive integer", {"batch_size": 0}),
    ("negative", {"num_workers": -1}),
    ("need num_workers", {"prefetch_factor": 2}),
    ("must be positive", {"num_workers": 1, "prefetch_factor": 0}),
]


@pytest.mark.parametrize(("text", "options"), REFUSED)
def test_refused(text, options):
    assert_raises(ValueError, text, lambda: DataLoader(Numbers(), **options))


def test_refused_for_streams():
    assert_raises(ValueError, "own order", lambda: DataLoader(Stream(), shuffle=True))
    assert_raises(TypeError, "pin_memori", lambda: DataLoader(Numbers(), pin_memori=True))


# -- sources --------------------------------------------------------------------------------------------


def test_digits():
    digits = data.digits()
    x, y = digits.tensors
    assert x.shape == (1797, 1, 8, 8) and x.dtype is ag.float32 and float(x.max()) == 1 and set(y.tolist()) == set(range(10))


def test_series():
    years, spots = data.sunspots()
    assert years.shape == spots.shape == (309,) and years[0].item() == 1700 and spots[0].item() == 5
    times, ppm = data.co2()
    assert times.shape == ppm.shape and 1958 < times[0].item() < 1959 and not ppm.isnan().any().item()


@pytest.mark.parametrize(("name", "package"), [("digits", "scikit-learn"), ("sunspots", "statsmodels"), ("co2", "statsmodels")])
def test_missing_packages_say_what_to_type(name, package, monkeypatch):
    for module in ("sklearn.datasets", "statsmodels.datasets.sunspots", "statsmodels.datasets.co2"):
        monkeypatch.setitem(sys.modules, module, None)
    assert_raises(ImportError, f"pip install {package}", getattr(data, name))


def test_text(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("héllo\nwörld 🙂", encoding="utf-8")
    text = data.text(path)
    assert text.ids.dtype is ag.int64 and text.decode(text.ids) == "héllo\nwörld 🙂"
    assert text.symbols == "".join(sorted(set("héllo\nwörld 🙂")))
    assert text.decode(text.encode("hello".replace("e", "é"))) == "héllo"
    assert_raises(ValueError, "['z']", lambda: text.encode("z"))
    path.write_text("")
    assert_raises(ValueError, "is empty", lambda: data.text(path))
    with pytest.raises(FileNotFoundError):
        data.text(os.fspath(tmp_path / "none"))


def test_names_of_pytorch():
    from autograd.utils.data import DataLoader as found

    assert found is ag.utils.data.DataLoader is DataLoader
