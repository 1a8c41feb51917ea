"""The MPI backend: real jobs, started by the mpiexec beside this Python or on the PATH."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import distributed_checks as checks
import pytest
from helpers import assert_raises

import autograd as ag
from autograd import distributed

TESTS = Path(__file__).resolve().parent
EXAMPLE = TESTS.parent / "examples/09_mpi_digits.py"
SHARED = Path("/dev/shm")
BEFORE = set(SHARED.glob("mpich_shm_*"))
SOON = 30  # seconds within which a job whose rank failed has to be over
# Ranks on this machine alone, whatever a cluster's environment says; each with one thread, since they share its cores.
ENVIRONMENT = {"HYDRA_LAUNCHER": "fork", "HYDRA_RMK": "user", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
FAILING = """
import sys, numpy as np
from autograd import distributed
from autograd.distributed.backend import backend
distributed.init("mpi", grace=0.5, timeout={timeout})
backend().start_all_reduce(np.ones(10)).wait()
if distributed.rank() == 1:
    {what}
distributed.barrier()
"""


def mpiexec(ranks, *arguments, timeout=120):
    """A finished job of so many ranks of Python, with its output; ended with all its processes when it hangs."""
    program = shutil.which("mpiexec", path=os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", os.defpath))
    assert program, "no mpiexec: pip install 'autograd-wgpu[test]' brings one"
    command = [program, "-n", str(ranks), sys.executable, *map(str, arguments)]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env={**os.environ, **ENVIRONMENT}, start_new_session=True, **pipes) as job:
        try:
            out, errors = job.communicate(timeout=timeout)
        except BaseException:
            os.killpg(job.pid, signal.SIGKILL)  # mpiexec; its ranks end when they lose it
            raise
        finally:
            sweep()
    return subprocess.CompletedProcess(command, job.returncode, out, errors)


def sweep():
    """MPICH leaves its shared memory behind when ranks are aborted or killed: remove what came since this file was imported
    and nobody maps. A job may be over a little before its ranks are: then a later call finds it."""
    fresh, used = set(SHARED.glob("mpich_shm_*")) - BEFORE, ""
    for maps in Path("/proc").glob("[0-9]*/maps") if fresh else ():
        with contextlib.suppress(OSError):
            used += maps.read_text(errors="replace")
    for path in fresh:
        if path.name not in used:
            path.unlink(missing_ok=True)


def succeeded(job):
    assert job.returncode == 0, f"{job.args}\n{job.stdout}\n{job.stderr}"
    return job.stdout


@pytest.mark.parametrize("ranks", [2, 4])
def test_what_holds_on_every_backend(ranks, tmp_path):
    """Operations, DataParallel, compression, ShardedOptimizer, saving: distributed_checks.py, in one job."""
    out = succeeded(mpiexec(ranks, "-W", "error", TESTS / "distributed_checks.py", tmp_path))
    assert re.findall(r"^passed (\w+)", out, re.M) == [check.__name__ for check in checks.CHECKS]


def test_the_same_on_processes(tmp_path):
    """What is not in test_distributed.py already."""
    found = distributed.spawn(checks.run, 2, (tmp_path, checks.PROCESS))
    assert found == [[check.__name__ for check in checks.PROCESS]] * 2


def test_nothing_of_mpi_is_imported_before_init(monkeypatch):
    code = """
import sys, autograd
from autograd import distributed
from autograd.distributed import mpi
distributed.init("local")
distributed.all_reduce(autograd.ones(2))
distributed.finish()
assert not [name for name in sys.modules if name.startswith("mpi4py")]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    monkeypatch.setitem(sys.modules, "mpi4py", None)  # as if it were not installed
    assert_raises(ImportError, "pip install 'autograd-wgpu[mpi]'", lambda: distributed.init("mpi"))
    assert not distributed.is_initialized()
    for option in ("grace", "timeout"):
        assert_raises(ValueError, f"{option} is a number of seconds; got -1", lambda option=option: distributed.init("mpi", **{option: -1}))


def test_a_rank_that_raises_ends_the_job():
    """Rank 1's error, with its traceback and rank, while rank 0 waits for it."""
    started = time.monotonic()
    job = mpiexec(2, "-c", FAILING.format(timeout=60, what="raise KeyError('the third drawer')"))
    assert job.returncode != 0 and time.monotonic() - started < SOON
    assert "rank 1 of 2 failed, which ends all ranks:\nTraceback" in job.stderr
    assert "KeyError: 'the third drawer'" in job.stderr and "rank 0 of 2 failed" not in job.stderr


def test_a_rank_that_ends_while_others_wait_ends_the_job():
    """Without an error, as a rank with fewer batches does: MPI itself would wait for ever."""
    started = time.monotonic()
    job = mpiexec(2, "-c", FAILING.format(timeout=60, what="sys.exit(0)"))
    assert job.returncode != 0 and time.monotonic() - started < SOON
    assert "[barrier] rank 0 waits, and rank 1 has ended its program" in job.stderr


def test_ranks_that_do_different_things_end_the_job():
    """MPI would let them: neither has failed, and neither ends."""
    job = mpiexec(2, "-c", FAILING.format(timeout=60, what="backend().broadcast(np.ones(3), 0)"))
    assert job.returncode != 0
    assert "different things: rank 0: barrier; rank 1: broadcast of float64 (3,), 24 bytes, from rank 0. All call" in job.stderr


def test_a_rank_that_does_not_come_is_missed():
    """What was started is compared with nothing: there only the time tells."""
    for what in ("import time; time.sleep(20)", "backend().start_all_reduce(np.ones(3)).wait()"):
        job = mpiexec(2, "-c", FAILING.format(timeout=0.5, what=what))
        assert job.returncode != 0
        assert re.search(r"\[(barrier|all_reduce)\] rank \d waited 0.5 s. Do all ranks call the same operations\?", job.stderr)


def test_a_killed_rank_ends_the_job_and_a_restart_goes_on_exactly(tmp_path):
    """Killed in the third epoch; the file of the second loads, and leads to where an undisturbed training ends."""
    script = TESTS / "distributed_checks.py"
    job = mpiexec(2, script, tmp_path, "killed_in_the_third_epoch")
    assert job.returncode != 0 and time.time() - float((tmp_path / "broken.killed").read_text()) < SOON
    out = succeeded(mpiexec(2, script, tmp_path, "a_restart_goes_on_exactly"))
    assert out.startswith("passed a_restart_goes_on_exactly")


def test_example(tmp_path):
    """Two ranks, and one alone, without mpiexec, that goes on from what they saved."""
    options = [EXAMPLE, "--device", "cpu", "--out", tmp_path / "new" / "out", "--epochs"]
    out = succeeded(mpiexec(2, *options, "4"))
    accuracy = re.fullmatch(r"2 ranks: test accuracy (\d+\.\d)%, on 359 images they never saw\nwrote .*\n", out)
    assert accuracy and float(accuracy[1]) >= 95
    saved = ag.load(tmp_path / "new/out/mpi_digits.safetensors")
    assert saved["epoch"] == 4 and {"model", "optimizer", "schedule"} < set(saved)
    alone = [sys.executable, *map(str, options), "5", "--resume"]
    done = subprocess.run(alone, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert succeeded(done).startswith("1 rank: test accuracy 9")
    assert ag.load(tmp_path / "new/out/mpi_digits.safetensors")["epoch"] == 5
