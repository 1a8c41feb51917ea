"""Ranks that raise, die, disagree or do not come: the others end within seconds, and nothing is left of them."""

import signal
import subprocess
import sys
import threading
import time
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import distributed_faults as workers
import pytest
from distributed_leaks import nothing_stays  # noqa: F401  (a fixture of every test)

from autograd import distributed

SOON = 30  # seconds for a failure to end everything; starting processes is most of them on a busy machine


def failing(function, size, *args, **options):
    """The text of the error that spawn raises, within seconds."""
    started = time.monotonic()
    with pytest.raises(RuntimeError) as caught:
        distributed.spawn(function, size, args, **options)
    assert time.monotonic() - started < SOON
    return caught.value


def test_what_a_rank_raises_is_raised_with_its_traceback():
    heard = []
    error = failing(workers.raises, 2, listen=heard.append)
    assert "[spawn] rank 1 of 2 raised:\nTraceback" in str(error)
    assert "in raises\n" in str(error) and str(error).endswith("KeyError: 'the third drawer'\n")
    assert isinstance(error.__cause__, KeyError)
    assert heard == ["[distributed] rank 0 stops: another rank failed"]


def test_an_error_that_cannot_be_sent_is_sent_as_text():
    error = failing(workers.raises_unpicklable, 1)
    assert "Unpicklable: two words" in str(error) and error.__cause__ is None


def test_a_killed_rank_ends_the_others_wherever_they_are():
    assert str(failing(workers.killed, 3)) == "[spawn] rank 1 of 3 was ended by SIGKILL"


def test_a_rank_that_leaves_or_does_not_come_is_missed():
    assert "rank 0 of 2 ended with exit code 3" in str(failing(workers.leaves, 2, 3))
    assert "rank 1 waits for rank 0, which has ended" in str(failing(workers.returns_early, 2))
    assert "rank 0 waited 0.3 s for ranks [1]" in str(failing(workers.dawdles, 2, timeout=0.3))


def test_the_caller_hears_reports_and_may_stop_everything():
    heard = []

    def stop(message):
        heard.append(message["rank"])
        if len(heard) == 2:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        distributed.spawn(workers.reports_and_waits, 2, listen=stop)
    assert sorted(heard) == [0, 1]


PARENT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, sys.argv[1])
import distributed_faults
from autograd import distributed
from autograd.distributed.process import Link
make = Link.__init__
def noted(self, *args):
    make(self, *args)
    print(self.name, flush=True)
Link.__init__ = noted
distributed.spawn(distributed_faults.says_its_pid_and_waits, 2)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_ranks_end_with_their_parent(how):
    """Their common output closes only when all of them are gone."""
    command = [sys.executable, "-c", PARENT, str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        watchdog = threading.Timer(120, parent.kill)
        watchdog.start()
        name, *pids = (parent.stdout.readline().strip() for _ in range(3))
        assert len(set(pids)) == 2, parent.stderr.read()
        parent.send_signal(how)
        _, errors = parent.communicate(timeout=SOON)
        watchdog.cancel()
    assert parent.returncode != 0 and errors.count("Traceback") == (how is signal.SIGINT), errors
    with pytest.raises(FileNotFoundError):
        SharedMemory(name)
