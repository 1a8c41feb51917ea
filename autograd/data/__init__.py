"""Datasets, samplers and the loader that makes batches of them. PyTorch's names (torch.utils.data)."""

from .collate import default_collate, default_convert
from .dataset import ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset, TensorDataset, random_split
from .loader import DataLoader
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)  # fmt: skip
from .sources import Series, Text, co2, digits, sunspots, text
from .worker import WorkerInfo, get_worker_info

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset", "RandomSampler", "Sampler",
    "SequentialSampler", "Series", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset", "Text",
    "WeightedRandomSampler", "WorkerInfo", "co2", "default_collate", "default_convert", "digits", "get_worker_info",
    "random_split", "sunspots", "text",
]  # fmt: skip
