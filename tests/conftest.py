"""What all tests share: the devices they run on, and how Hypothesis searches."""

import os

import pytest
from hypothesis import settings

import autograd as ag

REQUIRED = os.environ.get("AUTOGRAD_REQUIRE_WGPU") == "1"
REASON = "no Vulkan device: the tests on wgpu did not run"

settings.register_profile("local", deadline=None, max_examples=20)
settings.register_profile("ci", deadline=None, max_examples=20, derandomize=True)
settings.load_profile("ci" if REQUIRED else "local")


def need_wgpu():
    """Skip the calling test where there is no GPU; fail it where one has to be there (AUTOGRAD_REQUIRE_WGPU=1)."""
    if ag.wgpu.is_available():
        return
    if REQUIRED:
        pytest.fail("AUTOGRAD_REQUIRE_WGPU=1, but no Vulkan device was found", pytrace=False)
    pytest.skip(REASON)


@pytest.fixture(params=["cpu", "wgpu"])
def device(request):
    """Both devices, one after the other."""
    if request.param == "wgpu":
        need_wgpu()
    return request.param


@pytest.fixture
def wgpu():
    """The GPU alone."""
    need_wgpu()
    return "wgpu"


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    """After pytest's own closing line: what was not tested, and why."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    skipped = [] if reporter is None else reporter.stats.get("skipped", [])
    count = sum(REASON in str(report.longrepr) for report in skipped)
    if count:
        reporter.write_line(f"{count} tests on wgpu were skipped: no Vulkan device was found (see README.md)")
