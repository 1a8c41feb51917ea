"""Training on many devices: processes on one machine, MPI across machines."""

from .backend import Backend, Request, barrier, finish, init, is_initialized, local_rank, rank, size, stats
from .batchnorm import AllReduce, SyncBatchNorm, convert_sync_batchnorm
from .collective import all_gather, all_reduce, broadcast
from .launch import report, spawn
from .output import progress, save
from .parallel import DataParallel
from .sampler import ShardedSampler
from .sharded import ShardedOptimizer
from .train import dp_train

__all__ = [
    "AllReduce", "Backend", "DataParallel", "Request", "ShardedOptimizer", "ShardedSampler", "SyncBatchNorm", "all_gather",
    "all_reduce", "barrier", "broadcast", "convert_sync_batchnorm", "dp_train", "finish", "init", "is_initialized", "local_rank",
    "progress", "rank", "report", "save", "size", "spawn", "stats",
]  # fmt: skip
