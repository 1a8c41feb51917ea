"""Random calls end in results or Python exceptions, never in the end of the process: see fuzz.py."""

import os
import subprocess
import sys
from pathlib import Path


def test_hostile_calls_never_abort(wgpu):
    """AUTOGRAD_FUZZ=10000 asks for more of them."""
    calls = os.environ.get("AUTOGRAD_FUZZ", "150")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    script = Path(__file__).with_name("fuzz.py")
    done = subprocess.run([sys.executable, script, calls], env=environment, capture_output=True, text=True)
    last = done.stdout.splitlines()
    assert done.returncode == 0, f"call {last[-1] if last else 0} ended the process: {done.stderr[-3000:]}"
    # Behind the counts stand the errors that say nothing to a user: the driver's words, an AttributeError.
    assert last[-1].startswith(f"{calls} calls:"), done.stdout[-3000:]
