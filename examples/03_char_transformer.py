"""A transformer learns to write like Python's documentation, a character at a time: python examples/03_char_transformer.py

The text is on every machine that has Python: the documentation strings in the standard library's source. How well the
next character is foreseen is measured in bits a character, on modules it never saw, beside two tables of counts: how
often each character occurs (unigram), and how often after which other (bigram).
"""

import argparse
import ast
import contextlib
import os
import re
from pathlib import Path

import numpy as np
from tqdm import tqdm

import autograd as ag
from autograd import nn, optim

CONTEXT = 64  # characters it sees
CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))


def docstrings(path):
    """The documentation strings of a source file, one after the other."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = (node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, kinds))
    return "\n\n".join(text for node in nodes if (text := ast.get_docstring(node)))


def data(limit=None):
    """Characters as numbers, for training and for the test: every tenth module is for the test."""
    paths = sorted(p for p in Path(os.__file__).parent.glob("[a-z]*.py"))[:limit]
    texts = [re.sub(r"[^\n -~]", "", docstrings(path)) for path in paths]
    place = {c: i for i, c in enumerate(CHARACTERS)}
    parts = ([t for i, t in enumerate(texts) if i % 10 != 9], [t for i, t in enumerate(texts) if i % 10 == 9])
    return tuple(np.array([place[c] for c in "\n\n".join(part)], dtype=np.int64) for part in parts)


class Writer(nn.Module):
    def __init__(self, width=64, heads=4, layers=2):
        super().__init__()
        self.character, self.place = nn.Embedding(len(CHARACTERS), width), nn.Embedding(CONTEXT, width)
        options = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, **options)
        self.body = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.out = nn.Linear(width, len(CHARACTERS))

    def forward(self, ids):  # (batch, time) -> scores of each next character (batch, time, characters)
        n = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(n, device=ids.device)
        x = self.character(ids) + self.place(ag.arange(n, device=ids.device))
        return self.out(self.body(x, mask, is_causal=True))

    @ag.no_grad()
    def write(self, start, length, random, temperature=0.7):
        """`start` and what may follow, each character drawn with its probability."""
        ids, device = [CHARACTERS.index(c) for c in start], self.out.weight.device
        for _ in range(length):
            scores = self(ag.tensor([ids[-CONTEXT:]], device=device))[0, -1] / temperature
            chances = scores.softmax(0).cpu().numpy().astype(np.float64)
            ids.append(int(random.choice(len(chances), p=chances / chances.sum())))
        return "".join(CHARACTERS[i] for i in ids)


def train(text, device, steps, seed=0, batch=32):
    """The model after so many steps. Ctrl-C ends it early, with what it has."""
    ag.manual_seed(seed)
    model, random = Writer().to(device), np.random.default_rng(seed)
    optimizer = optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps, pct_start=0.1)
    windows = np.lib.stride_tricks.sliding_window_view(text, CONTEXT + 1)
    with tqdm(total=steps, unit="step") as bar, contextlib.suppress(KeyboardInterrupt):
        for step in range(steps):
            pick = ag.from_numpy(windows[random.integers(0, len(windows), batch)]).to(device)
            loss = nn.functional.cross_entropy(model(pick[:, :-1]).flatten(0, 1), pick[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            bar.update()
            if step % 50 == 49:  # reading waits for the GPU
                bar.set_postfix(bits=f"{loss.item() / np.log(2):.2f}")
    return model.eval()


@ag.no_grad()
def bits(model, text, device):
    """Bits a character, each foreseen from what stands before it in its window."""
    rows = text[: (len(text) - 1) // CONTEXT * CONTEXT].reshape(-1, CONTEXT)
    following = text[1 : rows.size + 1].reshape(-1, CONTEXT)
    total = 0.0
    for i in range(0, len(rows), 64):
        x, y = (ag.from_numpy(part[i : i + 64]).to(device) for part in (rows, following))
        total += nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum").item()
    return total / rows.size / np.log(2)


def counted(known, text):
    """Bits a character by counts of characters, and of pairs; each count one higher, so that none is zero."""
    n = len(CHARACTERS)
    single, pairs = np.bincount(known, minlength=n) + 1.0, np.ones((n, n))
    np.add.at(pairs, (known[:-1], known[1:]), 1)
    unigram, bigram = single / single.sum(), pairs / pairs.sum(1, keepdims=True)
    return -np.log2(unigram[text]).mean(), -np.log2(bigram[text[:-1], text[1:]]).mean()


def main(device, steps, limit, length):
    known, unseen = data(limit)
    print(f"{len(known):,} characters to learn from, {len(unseen):,} of modules it never saw")
    model = train(known, device, steps)
    unigram, bigram = counted(known, unseen)
    print(f"bits a character: {bits(model, unseen, device):.2f}; unigram {unigram:.2f}, bigram {bigram:.2f}")
    print("it writes:\n" + model.write("Return ", length, np.random.default_rng(0)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default=os.environ.get("DEVICE") or "cpu")
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--limit", type=int, help="use no more modules than this")
    parser.add_argument("--length", type=int, default=400, help="characters to write")
    main(**vars(parser.parse_args()))
