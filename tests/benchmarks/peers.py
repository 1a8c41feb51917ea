"""Other engines on the same software or real Vulkan: tinygrad's WEBGPU, computeml, ferrotensor, rasptorch (extra `bench`).

Each workload of a peer runs in a process of its own, `peers.py PEER WORKLOAD`, so that a crash there ends nothing here
and no two drivers meet. It prints the median time of a step as JSON, the value read back at its end: a step that was
never waited for would cost nothing. What a peer does not have stays away from the table, and so does what it computes
with NumPy on the host.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

ROUNDS, LIMIT = 3, 300  # timed steps of a workload, and the seconds it may take in all


def numbers(*shape: int) -> np.ndarray:
    """Normal numbers in float32."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


# -- tinygrad -------------------------------------------------------------------------------------------------


def tinygrad(name: str) -> Callable[[], Any]:
    """With its JIT, which replays the kernels of the first two calls."""
    from tinygrad import Tensor, TinyJit, nn

    def small() -> Any:
        x, y, z = (Tensor(numbers(8)).realize() for _ in range(3))
        return lambda: Tensor.realize(*(x * y + z).sum().gradient(x, y, z))

    def chain() -> Any:
        x, y = (Tensor(numbers(1 << 20)).realize() for _ in range(2))
        return lambda: Tensor.realize(*((x * y + 1).tanh() * y - x).relu().sum().gradient(x))

    def matmul() -> Any:
        a, b = (Tensor(numbers(1024, 1024)).realize() for _ in range(2))
        return lambda: (a @ b).realize()

    def mlp() -> Any:
        layers = nn.Linear(784, 256), nn.Linear(256, 10)
        optimizer = nn.optim.AdamW(nn.state.get_parameters(layers), lr=1e-3)
        x, y = Tensor(numbers(64, 784)).realize(), Tensor(np.random.default_rng(0).integers(0, 10, 64).astype(np.int32)).realize()

        def step() -> None:
            optimizer.zero_grad()
            layers[1](layers[0](x).relu()).sparse_categorical_crossentropy(y).backward()
            optimizer.step()

        return step

    def encoder() -> Any:
        def layer() -> list:
            return [nn.Linear(128, 384), nn.Linear(128, 128), nn.Linear(128, 512), nn.Linear(512, 128), nn.LayerNorm(128), nn.LayerNorm(128)]

        layers = [layer() for _ in range(2)]
        weights = nn.state.get_parameters(layers)
        given = Tensor(numbers(8, 64, 128)).realize()

        def step() -> None:
            x = given
            for qkv, out, up, down, first, second in layers:
                q, k, v = (t.reshape(8, 64, 4, 32).transpose(1, 2) for t in qkv(x).chunk(3, -1))
                x = first(x + out(q.scaled_dot_product_attention(k, v).transpose(1, 2).reshape(8, 64, 128)))
                x = second(x + down(up(x).relu()))
            Tensor.realize(*(x * x).mean().gradient(*weights))

        return step

    return TinyJit({"small": small, "chain": chain, "matmul": matmul, "mlp": mlp, "encoder": encoder}[name]())


def dawn() -> str | None:
    """Where dawn-python put the WebGPU library that tinygrad loads."""
    found = sorted(Path(sysconfig.get_paths()["purelib"], "pydawn", "lib").glob(f"*_{os.uname().machine}.so"))
    return str(found[0]) if found else None


# -- computeml ------------------------------------------------------------------------------------------------


def computeml(name: str) -> Callable[[], Any]:
    """Its tape on its Vulkan kernels."""
    import computeml as cml

    context = cml.Context()

    def made(*shape: int) -> Any:
        return context.asarray(numbers(*shape))

    def small() -> Any:
        x, y, z = (made(8).requires_grad_() for _ in range(3))

        def step() -> Any:
            cml.ops.sum(x * y + z).backward()
            return x.grad.numpy()

        return step

    def matmul() -> Any:
        a, b = made(1024, 1024), made(1024, 1024)
        return lambda: (a @ b).numpy()

    def mlp() -> Any:
        model = cml.nn.Sequential(cml.nn.Linear(context, 784, 256, activation="relu"), cml.nn.Linear(context, 256, 10)).requires_grad_()
        optimizer = cml.optim.AdamW(model.parameters(), lr=1e-3)
        x, y = made(64, 784), context.asarray(np.random.default_rng(0).integers(0, 10, 64).astype(np.float32))

        def step() -> Any:
            optimizer.zero_grad()
            loss = cml.ops.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return float(loss)

        return step

    return {"small": small, "matmul": matmul, "mlp": mlp}[name]()


# -- ferrotensor ----------------------------------------------------------------------------------------------


def ferrotensor(name: str) -> Callable[[], Any]:
    """Its tape on wgpu. It has no recurrent layer: its GRU is written with its operations, as its users would."""
    import ferrotensor as ft

    def made(*shape: int, grad: bool = False) -> Any:
        x = ft.tensor(numbers(*shape)).to("gpu")
        return x.requires_grad_() if grad else x

    def small() -> Any:
        x, y, z = (made(8, grad=True) for _ in range(3))

        def step() -> Any:
            (x * y + z).sum().backward()
            return x.grad.tolist()

        return step

    def chain() -> Any:
        x, y = made(1 << 20, grad=True), made(1 << 20)

        def step() -> Any:
            total = ((x * y + 1.0).tanh() * y - x).relu().sum()
            total.backward()
            return total.item(), x.grad.sum().item()

        return step

    def matmul() -> Any:
        a, b = made(1024, 1024), made(1024, 1024)
        return lambda: a.matmul(b).sum().item()

    def gru() -> Any:
        xs = [made(32, 64) for _ in range(64)]
        w, u, h0 = made(64, 384, grad=True), made(128, 384, grad=True), ft.zeros([32, 128]).to("gpu")

        def step() -> Any:
            h, total = h0, None
            for x in xs:
                a, b = x.matmul(w), h.matmul(u)
                r = (a.narrow(1, 0, 128) + b.narrow(1, 0, 128)).sigmoid()
                z = (a.narrow(1, 128, 128) + b.narrow(1, 128, 128)).sigmoid()
                n = (a.narrow(1, 256, 128) + r * b.narrow(1, 256, 128)).tanh()
                h = n + z * (h - n)
                total = h.sum() if total is None else total + h.sum()
            total.backward()
            return u.grad.sum().item()

        return step

    return {"small": small, "chain": chain, "matmul": matmul, "gru": gru}[name]()


# -- rasptorch ------------------------------------------------------------------------------------------------


def rasptorch(name: str) -> Callable[[], Any]:
    """Its tape on its Vulkan kernels. Its tanh, GRU and attention compute on the host."""
    from rasptorch import Tensor, functional, nn, optim, vulkan_backend

    vulkan_backend.init(strict=True)
    vulkan_backend.set_job_timeout(1 << 63)  # of 10 s: past it, what is not computed yet is read, and freed

    def made(*shape: int, grad: bool = False) -> Any:
        return Tensor(numbers(*shape), requires_grad=grad, device="gpu")

    def small() -> Any:
        x, y, z = (made(8, grad=True) for _ in range(3))

        def step() -> Any:
            (x * y + z).sum().backward()
            return vulkan_backend.to_cpu(x.grad_vkbuf)

        return step

    def matmul() -> Any:
        a, b = made(1024, 1024), made(1024, 1024)
        return lambda: (a @ b).numpy()

    def mlp() -> Any:
        model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)).to("gpu")
        optimizer = optim.AdamW(model.parameters(), lr=1e-3)
        x, y = made(64, 784), Tensor(np.eye(10)[np.random.default_rng(0).integers(0, 10, 64)], device="gpu")

        def step() -> Any:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.numpy()

        return step

    return {"small": small, "matmul": matmul, "mlp": mlp}[name]()


PEERS: dict[str, tuple[Callable, tuple[str, ...]]] = {
    "tinygrad": (tinygrad, ("small", "chain", "matmul", "mlp", "encoder")),
    "computeml": (computeml, ("small", "matmul", "mlp")),
    "ferrotensor": (ferrotensor, ("small", "chain", "matmul", "gru")),
    "rasptorch": (rasptorch, ("small", "matmul", "mlp")),
}


def ours() -> dict[str, Callable]:
    """The same workloads, by the names that the peers use."""
    import workloads as w

    gru = partial(w.recurrent, kind="GRU", size=w.SIZES[0])
    return {"small": w.small, "chain": w.chain, "matmul": w.matmul, "mlp": w.mlp, "encoder": w.encoder, "gru": gru}


def able(workload: str) -> list[str]:
    """The peers that are installed and can run a workload."""
    return [peer for peer, (_, names) in PEERS.items() if workload in names and importlib.util.find_spec(peer) is not None]


def measure(peer: str, workload: str) -> dict:
    """A peer's median step, from a process of its own; what went wrong there as a note."""
    environment = {**os.environ, "DEV": "WEBGPU", "TRAINING": "1", "WEBGPU_BACKEND": "WGPUBackendType_Vulkan"}
    library = dawn()
    if library is not None:
        environment["WEBGPU_PATH"] = library
    try:
        done = subprocess.run([sys.executable, __file__, peer, workload], env=environment, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {"note": f"took longer than {LIMIT} s"}
    if done.returncode:
        return {"note": f"failed: {(done.stderr.strip().splitlines() or [f'exit status {done.returncode}'])[-1][:120]}"}
    return json.loads(done.stdout.strip().splitlines()[-1])


def main(peer: str, workload: str) -> None:
    step = PEERS[peer][0](workload)
    wait: Callable = lambda: None
    if peer == "tinygrad":
        from tinygrad import Device

        wait = Device[Device.DEFAULT].synchronize
    times = []
    for _ in range(3 + ROUNDS):
        start = perf_counter()
        step()
        wait()
        times.append(perf_counter() - start)
    print(json.dumps({"theirs_ms": sorted(times[3:])[ROUNDS // 2] * 1e3}))


if __name__ == "__main__":
    main(*sys.argv[1:])
