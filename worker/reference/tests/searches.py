# SPDX-License-Identifier: Apache-2.0
"""Draws models that look for the largest or smallest element, and programs whose search begins
at a finite number.

A model is a search between what moves or scales each element and a tail. A program is the model,
but for its search, which begins at a number from 1e3 to 1e30 (beyond the range of FP32 of
doubles) on the side where an element may lie beyond it. A witness is known for each: an input
that lies wholly there, on which FP32 and fp64 agree about the model.

    PYTHONPATH=worker/reference python worker/reference/tests/searches.py --seed 1 --count 100
"""

import dataclasses
import pathlib
import random
import tempfile

import generator
import torch
import torch.nn.functional as F

# What stands before a search, on x of 32 x 24.
_BEFORE = ("x", "x * {c}", "x + {d}", "x * {c} + {d}", "x * self.w", "x + self.b", "x * {c} + self.b", "x.abs()", "x.relu()")  # fmt: skip
# A search of the largest: the reference, and the same that begins at `start`.
_SEARCHES = {
    "max": ("s.amax(-1)", "s.amax(-1).clamp(min=start)"),
    "max over rows": ("s.amax(0)", "s.amax(0).clamp(min=start)"),
    "pool": (
        "F.max_pool1d(s, 5, 2, 2).squeeze(0)",
        "F.max_pool1d(F.pad(s, (2, 2), value=start), 5, 2).squeeze(0)",
    ),
    "softmax": ("torch.softmax(s, -1)", "_softmax(s, start)"),
    "logsumexp": ("torch.logsumexp(s, -1)", "torch.logsumexp(torch.cat([s, s[:, :1] * 0 + start], -1), -1)"),
    "running": ("s.cummax(-1).values", "s.cummax(-1).values.clamp(min=start)"),
    "second": ("s.topk(2, -1).values[:, 1]", "s.topk(2, -1).values[:, 1].clamp(min=start)"),
    "kept": ("s - s.amax(-1, keepdim=True)", "s - s.amax(-1, keepdim=True).clamp(min=start)"),
}  # fmt: skip
_TAILS = ("{}", "{}", "torch.exp(-({}) * 1e-4)", "({}) * 0.01", "torch.tanh(({}) * 1e-4)", "({}) * x.mean(-1).mean()", "({}).sum(0)")  # fmt: skip
_FAR, _LEAST = 1e-2, 1e-30
_SOURCE = """import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(24, dtype={dtype}))
        self.b = nn.Parameter(torch.zeros(24, dtype={dtype}))

    def forward(self, x):
        s = {before}
        return {after}

def get_inputs():
    return [torch.randn(32, 24, dtype={dtype})]

def get_init_inputs():
    return []
"""


def _softmax(s, start):
    """Of a loop that keeps the largest so far, from `start`, and divides by what is not zero."""
    e = torch.exp(s - s.amax(-1, keepdim=True).clamp(min=start))
    return e / e.sum(-1, keepdim=True).clamp(min=1e-30)


@dataclasses.dataclass
class _Parameters:
    w: torch.Tensor
    b: torch.Tensor


@dataclasses.dataclass
class Drawn:
    """A model and one program of it."""

    before: str
    search: str
    is_least: bool
    tail: str
    start: float
    dtype: str

    @property
    def title(self):
        end = "smallest" if self.is_least else "largest"
        return f"{self.search} of the {end} of {self.before} from {self.start:.3g} in {self.tail}, {self.dtype}"

    @property
    def after(self):
        return self.tail.format(_SEARCHES[self.search][0])

    @property
    def twin(self):
        return self.tail.format(_SEARCHES[self.search][1])

    @property
    def _before(self):
        # The smallest is the largest of what is negated.
        return f"-({self.before})" if self.is_least else self.before

    def source(self):
        before = f"self.w * 0 + self.b * 0 + ({self._before})"
        return _SOURCE.format(before=before, after=self.after, dtype=self.dtype)

    def run(self, after, x, w, b):
        names = {"torch": torch, "F": F, "_softmax": _softmax, "start": self.start}
        names |= {"x": x, "self": _Parameters(w, b)}
        names["s"] = eval(self._before, names)
        return eval(after, names)

    def has_witness(self):
        """Whether some legal input shows the program, all of whose elements lie ten times beyond
        where its search begins."""
        dtype = getattr(torch, self.dtype.removeprefix("torch."))
        for number in range(8):
            torch.manual_seed(number)
            size = -self.start * (10.0 if number < 4 else 30.0)
            sign = 1 if number % 2 else -1
            spread = torch.randn(32, 24, dtype=dtype) * (1.0 if number % 4 < 2 else 0.05 * size)
            x, w, b = sign * size + spread, torch.ones(24, dtype=dtype), torch.zeros(24, dtype=dtype)
            expected = self.run(self.after, x, w, b)
            if not expected.isfinite().all():
                continue
            exact = self.run(self.after, x.double(), w.double(), b.double())
            unit = _FAR * max(_LEAST, expected.abs().max().item())
            if (expected - exact).abs().max() > 1e-3 * unit:
                continue
            actual = self.run(self.twin, x, w, b)
            if not (actual - expected).abs().max() <= unit:
                return True
        return False


def draw(seed, count):
    """So many that have a witness, other ones for another seed."""
    chance = random.Random(seed)
    while count:
        c, d = chance.choice((-3.0, -0.5, 0.125, 2.0, 10.0)), chance.choice((-8.0, 0.5, 100.0))
        dtype = chance.choice(("torch.float32",) * 4 + ("torch.float64",))
        decades = (30.0, 60.0) if dtype == "torch.float64" else (3.0, 30.0)
        drawn = Drawn(
            chance.choice(_BEFORE).format(c=c, d=d),
            chance.choice(list(_SEARCHES)),
            chance.random() < 0.5,
            chance.choice(_TAILS),
            -(10 ** chance.uniform(*chance.choice((decades, (3.0, 5.0))))),
            dtype,
        )
        if drawn.has_witness():
            count -= 1
            yield drawn


def refusals(client, drawn, after, workloads):
    """Those of the workloads that refuse an expression."""

    names = client.session._loaded._states.names

    def program(tensors):
        return drawn.run(after, tensors["x"], tensors[names["w"]], tensors[names["b"]])

    return client.refusals(program, workloads)


def main():
    from assumed import workloads
    from conftest import Client

    options = generator.options(__doc__, 100)
    accepted, refused = 0, 0
    for drawn in draw(options.seed, options.count):
        with tempfile.TemporaryDirectory() as folder:
            client, path = Client(pathlib.Path(folder)), pathlib.Path(folder) / "problem.py"
            path.write_text(drawn.source())
            client.load(path)
            if by := refusals(client, drawn, drawn.after, workloads()):
                refused += 1
                print("an honest program is refused:", drawn.title, by, flush=True)
            if not refusals(client, drawn, drawn.twin, workloads()):
                accepted += 1
                print("accepted:", drawn.title, flush=True)
            client.session.close()
    print(f"{options.count} programs: {accepted} accepted; {refused} honest ones refused")


if __name__ == "__main__":
    main()
