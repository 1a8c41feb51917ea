"""The backend on MPI, through mpi4py: the processes that mpiexec started, on one machine or many.

An operation is a nonblocking one of MPI's, tested until it is done. MPI moves data only while it is called: what
start_all_reduce() began is tested by the thread it runs in, so it goes on while the program computes. A wait that takes
longer gives its core away between tests: MPI's own would keep it busy.

Same bits on all ranks: MPI requires it of all-reduce (MPI 4.1, section 6.9.6). MPI has no sum of 16-bit floats. Here
they travel as they are, in two steps: each rank gets its share of every rank's elements, adds them up in float32 in the
order of the ranks, and sends the rounded sums to all.

MPI compares nothing: ranks that reduce arrays of different sizes corrupt memory or hang. So an operation that is waited for
at once begins with a gather of claims, 128 bytes a rank, on a communicator of its own, where no data goes astray.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .. import dtypes
from .backend import WORDS, Backend, check_claims, claim

_PIECE = 1 << 28  # bytes in one call of MPI: some count in 32 bits
_EAGER, _PAUSE = 100, 5e-5  # tests without a pause, for answers that are nearly there; then seconds between two
_LAST_WORDS = 1.0  # seconds: what a rank wrote goes by way of mpiexec, which on an abort drops what is not yet through
_SHORT = {kind.numpy: kind for kind in dtypes.SHORT}


class MPI(Backend):
    """The ranks of MPI's world. grace: seconds that an operation may still take once a rank it waits for has ended.
    timeout: seconds that a rank waits for the others in one operation, who may be at something else for good.

    An error that nobody catches is shown with its rank, and ends all ranks (MPI_Abort); so does one rank ending its
    program while others wait for it.
    ImportError without mpi4py or without an MPI; RuntimeError where MPI was started without THREAD_SERIALIZED.
    """

    name = "mpi"

    def __init__(self, grace: float = 10.0, timeout: float = 1800.0):
        for option, value in (("grace", grace), ("timeout", timeout)):
            if not isinstance(value, int | float) or not value >= 0:
                raise ValueError(f"[init] {option} is a number of seconds; got {value!r}")
        super().__init__()
        self._mpi = mpi = _mpi4py()
        if mpi.Query_thread() < mpi.THREAD_SERIALIZED:
            raise RuntimeError("[init] MPI must allow calls from one thread at a time; mpi4py.rc.thread_level asks for it")
        self._grace, self._timeout = grace, timeout
        # apart from the program's own messages, and from each other
        self._world, self._claims, self._notes = (mpi.COMM_WORLD.Dup() for _ in range(3))
        self.rank, self.size = self._world.rank, self._world.size
        here = self._world.Split_type(mpi.COMM_TYPE_SHARED)
        self.local_rank = here.rank
        here.Free()
        self._ended: set[int] = set()  # ranks whose program is over, as far as was heard
        self._process, self._hook = os.getpid(), sys.excepthook
        sys.excepthook = self._uncaught
        atexit.register(self.finish)

    # -- operations -----------------------------------------------------------------------------------

    def _now(self, operation: Callable, *args: Any) -> Any:
        return super()._now(self._compared, operation, *args)

    def _compared(self, operation: Callable, *args: Any) -> Any:
        """The operation, once all ranks are known to do the same. RuntimeError on every rank where they do not."""
        name = operation.__name__.removeprefix("_")
        claims = np.empty((self.size, WORDS), np.int64)
        self._wait(self._claims.Iallgather(claim(name, *args), claims), name)
        check_claims(claims)
        return operation(*args)

    def _all_reduce(self, array: np.ndarray) -> None:
        for piece in _pieces(array):
            if piece.dtype in _SHORT:
                self._reduce_short(piece)
            else:
                operator = self._mpi.LOR if piece.dtype == bool else self._mpi.SUM
                self._wait(self._world.Iallreduce(self._mpi.IN_PLACE, piece, operator), "all_reduce")

    def _reduce_short(self, piece: np.ndarray) -> None:
        """The sum of 16-bit floats: added up in float32, each share by one rank, and rounded once."""
        kind, wide = piece.dtype, np.dtype(np.float32)
        share = -(-piece.size // self.size)
        sent, got = np.zeros((self.size, share), np.uint16), np.empty((self.size, share), np.uint16)
        sent.reshape(-1)[: piece.size] = piece.view(np.uint16)
        self._wait(self._world.Ialltoall(sent, got), "all_reduce")
        total = dtypes.converted(got[0].view(kind), wide)
        for part in got[1:]:
            total = total + dtypes.converted(part.view(kind), wide)
        self._wait(self._world.Iallgather(dtypes.converted(total, kind).view(np.uint16), got), "all_reduce")
        piece.view(np.uint16)[:] = got.reshape(-1)[: piece.size]

    def _broadcast(self, array: np.ndarray, src: int) -> None:
        for piece in _pieces(array):
            self._wait(self._world.Ibcast(piece.view(np.uint8), src), "broadcast")

    def _all_gather(self, array: np.ndarray) -> list[np.ndarray]:
        found = [np.empty_like(array) for _ in range(self.size)]
        for piece, *places in zip(_pieces(array), *(_pieces(f) for f in found), strict=True):
            got = np.empty((self.size, piece.nbytes), np.uint8)
            self._wait(self._world.Iallgather(piece.view(np.uint8), got), "all_gather")
            for place, row in zip(places, got, strict=True):
                place.view(np.uint8)[:] = row
        return found

    def _barrier(self) -> None:
        self._wait(self._world.Ibarrier(), "barrier")

    def _wait(self, request: Any, name: str) -> None:
        """Test until the request is done. RuntimeError when a rank that it waits for is over."""
        tests, alone, begun = 0, None, 0.0
        while not request.Test():
            tests += 1
            if tests <= _EAGER:
                continue
            time.sleep(_PAUSE)
            begun = begun or time.monotonic()
            if time.monotonic() - begun > self._timeout:
                raise RuntimeError(
                    f"[{name}] rank {self.rank} waited {self._timeout:g} s. Do all ranks call the same operations? "
                    'init("mpi", timeout=...) waits longer'
                )
            self._listen()
            if self._ended:
                alone = alone or time.monotonic()  # what they sent before they ended may still be under way
                if time.monotonic() - alone > self._grace:
                    raise RuntimeError(
                        f"[{name}] rank {self.rank} waits, and rank {', '.join(map(str, sorted(self._ended)))} has ended its "
                        f"program. Do all ranks take the same number of steps?"
                    )

    def _listen(self) -> None:
        """Hear which ranks' programs are over."""
        status = self._mpi.Status()
        while self._notes.Iprobe(status=status):
            self._notes.Recv(bytearray(0), status.source)
            self._ended.add(status.source)

    # -- the end ----------------------------------------------------------------------------------------

    def _uncaught(self, kind: type[BaseException], error: BaseException, trace: Any) -> None:
        """sys.excepthook: in a process that this one forked, what it was before."""
        if os.getpid() != self._process:
            self._hook(kind, error, trace)
        else:
            self.abort(error.with_traceback(trace))

    def abort(self, error: BaseException) -> NoReturn:
        """Show the error with its traceback and this rank, and end all ranks: mpiexec returns 1."""
        lines = "".join(traceback.format_exception(error))
        sys.stdout.flush()
        sys.stderr.write(f"rank {self.rank} of {self.size} failed, which ends all ranks:\n{lines}")
        sys.stderr.flush()
        time.sleep(_LAST_WORDS)
        self._mpi.COMM_WORLD.Abort(1)
        os._exit(1)  # MPI_Abort does not return, but does not promise that

    def finish(self) -> None:
        """Tell the other ranks that this one is done, and wait until all are. At exit this happens by itself."""
        if os.getpid() != self._process or self._mpi.Is_finalized():
            return
        super().finish()
        atexit.unregister(self.finish)
        others = [rank for rank in range(self.size) if rank != self.rank]
        sent = [self._notes.Isend(bytearray(0), rank) for rank in others]
        while len(self._ended) < len(others):
            self._listen()
            time.sleep(_PAUSE)
        self._mpi.Request.Waitall(sent)
        for communicator in (self._world, self._claims, self._notes):
            communicator.Free()
        if sys.excepthook == self._uncaught:
            sys.excepthook = self._hook


def _mpi4py() -> Any:
    """mpi4py's MPI, which starts MPI."""
    try:
        from mpi4py import MPI as mpi
    except (ImportError, RuntimeError) as error:  # the second where there is mpi4py and no MPI
        raise ImportError(
            f"[init] the \"mpi\" backend needs mpi4py and an MPI: pip install 'autograd-wgpu[mpi]' has mpi4py and mpich ({error})"
        ) from error
    return mpi


def _pieces(array: np.ndarray) -> list[np.ndarray]:
    """The array as vectors that share its memory, each small enough for one call of MPI; none of nothing."""
    flat, step = array.reshape(-1), _PIECE // array.itemsize
    return [flat[i : i + step] for i in range(0, flat.size, step)]
