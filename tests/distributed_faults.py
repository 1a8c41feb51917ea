"""What the processes of test_distributed_faults.py run, and how they go wrong."""

import os
import signal
import threading

from autograd import distributed


def raises():
    """Rank 1 raises while the others wait for it."""
    if distributed.rank() == 1:
        raise KeyError("the third drawer")
    try:
        distributed.barrier()
    except RuntimeError as error:  # told, not ended by a signal: there is time to put things in order
        distributed.report(str(error))
        raise


class Unpicklable(Exception):
    """An error that does not survive the way to the parent."""

    def __init__(self, one, two):
        super().__init__("two words")
        self.lock = threading.Lock()


def raises_unpicklable():
    raise Unpicklable(1, 2)


def killed():
    """Rank 1 is killed while rank 0 waits for it, and rank 2 for something that does not come."""
    if distributed.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if distributed.rank() == 2:
        threading.Event().wait()
    distributed.barrier()


def leaves(code):
    """A rank that leaves without a word."""
    if distributed.rank() == 0:
        os._exit(code)
    distributed.barrier()


def returns_early():
    """Rank 0 takes a step less."""
    distributed.barrier()
    if distributed.rank() == 1:
        distributed.barrier()


def dawdles():
    """Rank 1 never comes, and is alive."""
    if distributed.rank() == 1:
        threading.Event().wait()
    distributed.barrier()


def reports_and_waits():
    distributed.report({"rank": distributed.rank()})
    threading.Event().wait()


def says_its_pid_and_waits():
    """For those who end the parent."""
    print(os.getpid(), flush=True)
    threading.Event().wait()
