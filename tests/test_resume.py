"""A run that is stopped and resumed from its file goes on with the bits of one that was not."""

import pytest
from helpers import array

import autograd as ag
from autograd import amp, nn, optim


class Training:
    """All that a training has: model, optimizer, schedule, scaler, generators, the order of the data."""

    def __init__(self, device, kind):
        self.device = device
        if kind == "gru":
            self.model = nn.ModuleDict({"body": nn.GRU(3, 6, batch_first=True, dropout=0.5, num_layers=2), "head": nn.Linear(6, 2)})
        else:
            layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.2, batch_first=True)
            self.model = nn.ModuleDict({"enter": nn.Linear(3, 6), "body": layer, "head": nn.Linear(6, 2)})
        self.model.to(device)
        self.optimizer = optim.AdamW(self.model.parameters(), lr=0.02)
        self.schedule = optim.lr_scheduler.OneCycleLR(self.optimizer, max_lr=0.05, total_steps=40)
        # It grows every third step, and the first scale overflows float16: a step is left out.
        self.scaler = amp.GradScaler(device, init_scale=2.0**15, growth_interval=3)
        self.order = ag.Generator().manual_seed(7)
        source = ag.Generator().manual_seed(1)
        with ag.random.drawing_from(source):
            samples = ag.data.TensorDataset(ag.randn(12, 3, 3), ag.randint(2, (12,)))
        self.loader = ag.data.DataLoader(samples, batch_size=4, shuffle=True, generator=self.order, device=device)
        self.epoch = 0

    def forward(self, x):
        y = self.model["enter"](x) if "enter" in self.model else x
        y = self.model["body"](y)
        return self.model["head"]((y[0] if isinstance(y, tuple) else y)[:, -1])

    def run(self, epochs):
        """The losses of each step; noise on the input is drawn from the common generator."""
        losses = []
        for _ in range(epochs):
            for x, y in self.loader:
                with amp.autocast(self.device, ag.float16):
                    loss = nn.functional.cross_entropy(self.forward(x + 0.1 * ag.randn(*x.shape, device=self.device)), y)
                self.optimizer.zero_grad()
                self.scaler.scale(loss).backward()
                self.scaler.unscale_(self.optimizer)
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.schedule.step()
                losses.append(loss.item())
            self.epoch += 1
        return losses

    def parts(self):
        return {name: getattr(self, name) for name in ("model", "optimizer", "schedule", "scaler")}

    def save(self, path):
        state = {name: part.state_dict() for name, part in self.parts().items()}
        ag.save({**state, "random": ag.get_rng_state(), "order": self.order.get_state(), "epoch": self.epoch}, path)

    def load(self, path):
        saved = ag.load(path, self.device)
        for name, part in self.parts().items():
            part.load_state_dict(saved[name])
        ag.set_rng_state(saved["random"])
        self.order.set_state(saved["order"])
        self.epoch = saved["epoch"]


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_losses_after_a_resume_are_those_of_an_uninterrupted_run(kind, device, tmp_path):
    ag.manual_seed(3)
    whole = Training(device, kind)
    whole.run(1)
    whole.save(tmp_path / "f")
    want = whole.run(1)
    ag.manual_seed(99)
    resumed = Training(device, kind)
    resumed.load(tmp_path / "f")
    assert resumed.run(1) == want
    assert resumed.epoch == 2 and resumed.scaler.get_scale() == whole.scaler.get_scale() != 2.0**15
    for p, q in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert array(p).tobytes() == array(q).tobytes()
    assert len(set(want)) == len(want), "losses that are all alike would show nothing"
