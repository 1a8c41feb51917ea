"""An operation of your own, with its kernel and its gradient: python examples/06_custom_op.py

The snake, y = x + sin²(a x) / a (Ziyin, Hartwig, Ueda: arXiv 2006.08195), is an activation that can learn what repeats.
It is written three times: in NumPy for the CPU, in WGSL for the GPU, and once more in tensor operations to compare with.
Its gradient, dx = dy (1 + sin(2 a x)), is written twice: as a kernel, for speed, and in tensor operations, so that it can
be differentiated again. gradcheck compares it with differences. Then a small network with snakes learns a wave.
"""

import argparse
import os

import numpy as np
from tqdm import tqdm

import autograd as ag
from autograd import nn, optim


def elementwise(name, formula, *inputs):
    """A kernel y = formula of the inputs' elements and the number a, one invocation an element."""
    read = "".join(f"@group(0) @binding({i}) var<storage, read> {x}: array<f32>;\n" for i, x in enumerate(inputs, 1))
    return ag.wgpu.kernel(f"""
        struct Params {{ a: f32 }}
        @group(0) @binding(0) var<uniform> p: Params;
        {read}
        @group(0) @binding({len(inputs) + 1}) var<storage, read_write> y: array<f32>;

        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
            let i = id.x;
            if (i < arrayLength(&y)) {{ y[i] = {formula}; }}
        }}
    """, name)  # fmt: skip


SNAKE = elementwise("snake", "x[i] + sin(p.a * x[i]) * sin(p.a * x[i]) / p.a", "x")
SNAKE_BACKWARD = elementwise("snake_backward", "dy[i] * (1.0 + sin(2.0 * p.a * x[i]))", "x", "dy")


class Snake(ag.Function):
    """y = x + sin²(a x) / a for a number a"""

    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x)
        ctx.a = a
        if x.device.type == "wgpu":
            return SNAKE(x, ag.empty(x.shape, device=x.device), threads=x.numel(), a=a)
        return ag.from_numpy(x.numpy() + np.sin(a * x.numpy()) ** 2 / a)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        if dy.device.type == "wgpu" and not ag.is_grad_enabled():
            return SNAKE_BACKWARD(x, dy, ag.empty(x.shape, device=x.device), threads=x.numel(), a=ctx.a), None
        return dy * (1 + (2 * ctx.a * x).sin()), None  # somebody asked for a gradient of the gradient, or it is the CPU


def composed(x, a):
    """The same in tensor operations."""
    return x + (a * x).sin() ** 2 / a


class Network(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.enter, self.middle, self.out = nn.Linear(1, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(Snake.apply(self.middle(Snake.apply(self.enter(x), 3.0)), 3.0))


def check(device):
    """Values and gradients against differences, and against the same in tensor operations."""
    x = ag.linspace(-2, 2, 9, dtype=ag.float64).requires_grad_()
    assert ag.gradcheck(lambda x: Snake.apply(x, 1.5), x) and ag.gradgradcheck(lambda x: Snake.apply(x, 1.5), x)
    print("gradcheck and gradgradcheck in float64 on the CPU: True")
    ag.manual_seed(0)
    x, dy = ag.randn(1000, device=device, requires_grad=True), ag.randn(1000, device=device)
    found = []
    for function in (Snake.apply, composed):
        y = function(x, 1.5)
        found.append((y, ag.grad(y, x, dy)[0]))
    apart = [float((mine - other).abs().max()) for mine, other in zip(*found, strict=True)]
    print(f"on {device}, against tensor operations: y is {apart[0]:.0e} apart, dx {apart[1]:.0e}")
    assert max(apart) < 1e-4
    (again,) = ag.grad(ag.grad(Snake.apply(x, 1.5).sum(), x, create_graph=True)[0].sum(), x)
    assert float((again - 3 * (3 * x.detach()).cos()).abs().max()) < 1e-4


def learn(device, steps):
    """Learn sin(3 x) + x / 2 from 256 points; the losses."""
    ag.manual_seed(0)
    model = Network().to(device)
    x = ag.linspace(-3, 3, 256, device=device)[:, None]
    target = (3 * x).sin() + x / 2
    optimizer, losses = optim.Adam(model.parameters(), lr=0.005), []
    for step in tqdm(range(steps), unit="step"):
        loss = nn.functional.mse_loss(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step == steps - 1:
            losses.append(loss.item())
    return losses


def main(device, steps):
    check(device)
    before = ag.wgpu.stats()["dispatches"] if device != "cpu" else 0
    losses = learn(device, steps)
    print(f"the loss falls from {losses[0]:.4f} to {losses[-1]:.4f} in {steps} steps on {device}")
    if device != "cpu":
        print(f"with {ag.wgpu.stats()['dispatches'] - before} dispatches, those of the two kernels among them")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default=os.environ.get("DEVICE") or "cpu")
    parser.add_argument("--steps", type=int, default=400)
    main(**vars(parser.parse_args()))
