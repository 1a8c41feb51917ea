"""A kernel is compiled once, not again for every dispatch: what software Vulkan does where it compiles parameters in."""

# Without Mesa's cache on disk a compilation takes 20 ms or more, and the dispatch of a kernel that is there 1 ms.
PROGRAM = """
from time import process_time
import numpy as np
import autograd as ag
from autograd.webgpu.launch import SoftmaxBackward

gpu = ag.wgpu.open_device()
x = ag.randn(3, 4, 5, 6, device="wgpu")
index = ag.tensor(np.zeros((3, 2, 5, 6), np.int64), device="wgpu")
ones, y = ag.ones(3, 2, 5, 6, device="wgpu"), gpu.upload(np.ones((6, 40), np.float32))
turned, backward = x.transpose(0, 3)[:, 1:, :, ::2], SoftmaxBackward("softmax_backward")
work = {
    "softmax": lambda: x.softmax(2),
    "log_softmax": lambda: turned.log_softmax(1),
    "softmax_backward": lambda: backward(y, y, 1),
    "scatter": lambda: x.scatter(1, index, ones),
    "scatter_add": lambda: x.scatter_add(1, index, ones),
    "cumsum": lambda: turned.cumsum(1),
    "cummax": lambda: x.cummax(1),
    "remainder": lambda: x % 0.7,
    "floor_divide": lambda: x // 0.3,
    "erfinv": lambda: x.erfinv(),
    "copy": lambda: turned.contiguous(),
    "sum": lambda: turned.sum((0, 2)),
    "matmul": lambda: turned @ x[0, 0].transpose(0, 1)[:2, :3],
}
for name, run in work.items():
    times = []
    for _ in range(4):
        start = process_time()
        kept = run()
        ag.wgpu.synchronize()
        times.append(process_time() - start)
    print(name, round(times[0] * 1e3), round(min(times[1:]) * 1e3))
"""


def test_no_kernel_is_compiled_for_a_dispatch(gpu, run):
    done = run(PROGRAM, MESA_SHADER_CACHE_DISABLE="1", MESA_GLSL_CACHE_DISABLE="1")
    assert not done.returncode, done.stderr.decode()
    found = {name: (int(first), int(later)) for name, first, later in map(str.split, done.stdout.decode().splitlines())}
    assert max(later for _, later in found.values()) < 15, found
