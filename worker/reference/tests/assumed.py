# SPDX-License-Identifier: Apache-2.0
"""Draws models, and programs that assume something of one value between their operators.

A model is four to eight operators, with up to two inputs, drawn as often on the numbers on which
roots and logarithms are defined as elsewhere. A program is the model itself, but for one value:
where that is above or below a bound, or next to zero, it is something else. The bound lies
between what public inputs make of the value and what some other legal inputs do, so that a
witness is known for each program; public inputs show nothing.

    PYTHONPATH=worker/reference python worker/reference/tests/assumed.py --seed 1 --count 100
"""

import copy
import dataclasses
import pathlib
import random
import tempfile

import generator
import torch
import torch.nn as nn
import torch.nn.functional as F

NAMES = {"torch": torch, "nn": nn, "F": F}
_SCALES = ("torch.randn({})", "torch.rand({})", "torch.randn({}) * 3", "torch.rand({}) * 2 - 1", "torch.rand({}) + 0.5")  # fmt: skip
_SINGLE = """
    torch.tanh({a}); torch.sigmoid({a}); F.gelu({a}); F.silu({a}); torch.relu({a}); {a}.square()
    torch.exp(-{a}.abs()); torch.log1p({a}.abs()); {a} / (1 + {a}.abs()); torch.softmax({a}, -1)
    F.layer_norm({a}, {a}.shape[-1:]); {a}.clamp(-2, 2); {a} - {a}.mean(-1, keepdim=True)
    {a} * 0.5 + 0.25; torch.sin({a}); {a}.cumsum(-1); F.softplus({a})
    {a} / ({a}.norm(dim=-1, keepdim=True) + 1e-6); torch.exp({a} - {a}.amax(-1, keepdim=True))
"""
# Defined on a part of the numbers.
_PARTIAL = """
    torch.log({c} - {a}); torch.sqrt({c} - {a}.square()); torch.asin({a} / {c})
    torch.acosh({c} + {a}); torch.sqrt({a} + {c}); torch.pow({a} + {c}, 0.7); torch.atanh({a} / {c})
    torch.log({c} + {a} * {a} * {a}); torch.sqrt({c} - {a}.abs().mean(-1, keepdim=True))
"""
_PAIR = """
    {a} * {b}; {a} + {b}; {a} - {b}; torch.maximum({a}, {b}); {a} * torch.sigmoid({b})
    {a} / (1 + {b}.square())
"""
_REDUCED = "{a}.mean(-1, keepdim=True); {a}.amax(-1, keepdim=True); {a}.sum(-1, keepdim=True)"
# Numbers of mixed workloads, beside the first.
MIXED_NUMBERS = (317, 318, *range(417, 437), *range(517, 529))
# Programs of one model, legal inputs among which a witness is looked for.
_PROGRAMS, _WITNESSES = 3, 40
_SOURCE = """import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {arguments}):
        {body}
        return {result}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""


def _some(text, chance):
    return chance.choice([part.strip() for line in text.splitlines() for part in line.split(";") if part.strip()])


class Model:
    """A model, and a Module of it whose values between operators can be exchanged."""

    def __init__(self, chance):
        self._chance = chance
        rows, width = chance.choice((16, 32, 64)), chance.choice((12, 16, 24))
        shape = chance.choice(((rows, width), (4, rows // 4, width)))
        self.names = ["x", "z"][: chance.randint(1, 2)]
        self.drawn = [chance.choice(_SCALES).format(", ".join(map(str, shape))) for _ in self.names]
        self._init, self._lines = [], []
        widths = {name: width for name in self.names}
        is_partial = chance.random() < 0.5
        for number in range(chance.randint(4, 8)):
            expression, width = self._operator(number, widths, is_partial and number in (0, 2))
            self._lines.append((f"v{number}", expression))
            widths[f"v{number}"] = width
        last = list(widths)[-1]
        others = [n for n, w in widths.items() if n[0] == "v" and n != last and w in (1, widths[last])]
        self._result = f"{last} + {chance.choice(others)}" if others and chance.random() < 0.5 else last
        torch.manual_seed(0)
        namespace = dict(NAMES)
        exec(self._text("hook({name!r}, {expression})", "hook"), namespace)
        self.module = namespace["Model"]()

    def _operator(self, number, widths, is_partial):
        chance = self._chance
        a = chance.choice(list(widths)[-3:])
        if is_partial:
            a = list(widths)[0] if number == 0 else a
            text = _some(_PARTIAL, chance)
            number = chance.choice((2.5, 4.0, 6.0, 10.0, 30.0))
            return text.format(a=a, c=number), 1 if "keepdim" in text else widths[a]
        kind = chance.random()
        if kind < 0.25:
            to = chance.choice((widths[a], 8, 32))
            self._init.append(f"self.l{number} = nn.Linear({widths[a]}, {to})")
            return f"self.l{number}({a})", to
        if kind < 0.3:
            value = chance.choice((0.3, 1.5, 2.0))
            self._init.append(f"self.s{number} = nn.Parameter(torch.tensor({value}))")
            return f"{a} * self.s{number}", widths[a]
        if kind < 0.55:
            b = chance.choice([name for name in widths if widths[name] == widths[a]])
            return _some(_PAIR, chance).format(a=a, b=b), widths[a]
        if kind < 0.65:
            return _some(_REDUCED, chance).format(a=a), 1
        return _some(_SINGLE, chance).format(a=a), widths[a]

    def _text(self, line, *more):
        lines = [f"{n} = {line.format(name=n, expression=e)}" for n, e in self._lines]
        return _SOURCE.format(
            init="\n        ".join(self._init) or "pass",
            arguments=", ".join([*self.names, *more]),
            body="\n        ".join(lines),
            result=self._result,
            inputs=", ".join(self.drawn),
        )

    def source(self):
        return self._text("{expression}")

    def public(self, seed):
        torch.manual_seed(seed)
        return [eval(text, NAMES) for text in self.drawn]

    def legal(self, seed):
        """Inputs of the same shapes: larger, smaller, moved, sorted, equal or far in places."""
        chance, found = self._chance, []
        for x in self.public(seed):
            size = 10 ** chance.uniform(-2, 1.5)
            some = torch.rand(len(x), *[1] * (x.dim() - 1)) < 0.2
            ways = (
                x * size,
                x + size * chance.choice((-1, 1)),
                torch.where(some, x * size, x),
                x.sort(-1).values * size,
                torch.where(torch.rand(x.shape) < 0.1, 3 * size * x, x),
                x[..., :1].expand(x.shape).clone(),
            )
            found.append(chance.choice(ways))
        return found

    @torch.no_grad()
    def run(self, inputs, hook):
        return self.module(*inputs, hook)

    def values(self, inputs):
        """(outputs, values by name)."""
        seen = {}

        def keep(name, value):
            seen[name] = value
            return value

        return self.run(inputs, keep), seen

    def programs(self):
        """Assumptions that some legal inputs show, and public ones do not."""
        usual = [self.values(self.public(seed))[1] for seed in range(1, 5)]
        others = [(x, *self.values(x)) for x in map(self.legal, range(100, 100 + _WITNESSES))]
        others = [each for each in others if each[1].isfinite().all()]
        names = self._chance.sample([n for n, _ in self._lines], min(_PROGRAMS, len(self._lines)))
        for name in names:
            assumption = self._assume(name, torch.stack([v[name] for v in usual]), others)
            if assumption and self._is_seen(assumption[0], *assumption[1]):
                yield assumption[0]

    def _assume(self, name, usual, others):
        """An Assumption, and (inputs, outputs) that it gets wrong; None without any."""
        kind = self._chance.choice(("above", "below", "near"))
        measure = {"above": torch.Tensor.amax, "below": lambda v: -v.amin(), "near": lambda v: -v.abs().amin()}[kind]
        reached = [(measure(values[name]).item(), x, y) for x, y, values in others]
        if not reached:
            return None
        most, x, y = max(reached, key=lambda each: each[0])
        end, part = measure(usual).item(), self._chance.uniform(0.05, 0.7)
        if kind == "near":
            if not -most < 0.3 * -end:
                return None
            bound = (-end) ** (1 - part) * max(-most, 1e-6 * -end) ** part
        else:
            span = (usual.max() - usual.min()).item()
            if not most > end + 0.2 * span:
                return None
            bound = end + 0.02 * span + part * (most - end)
        size = usual.square().mean().sqrt().item()
        return Assumption(name, kind, bound, size, self._chance.choice((0.0, 0.5, 2.0))), (x, y)

    def _is_seen(self, assumption, x, y):
        far = (self.run(x, assumption) - y).abs().max() > 2e-2 * y.abs().max().clamp(min=1e-20)
        public = [self.public(seed) for seed in range(50, 53)]
        return bool(far) and all(torch.equal(self.run(p, assumption), self.values(p)[0]) for p in public)


@dataclasses.dataclass
class Assumption:
    """Makes something else of one value where that is beyond a bound."""

    name: str
    kind: str
    bound: float
    size: float
    factor: float

    def __call__(self, name, value):
        if name != self.name:
            return value
        beyond = {"above": value, "below": -value, "near": -value.abs()}[self.kind]
        bound = -self.bound if self.kind == "near" else self.bound
        return torch.where(beyond > bound, self.factor * value + 0.3 * self.size, value)


def nothing(name, value):
    return value


class Judged:
    """A model that a Client has loaded."""

    def __init__(self, client, model, path):
        path.write_text(model.source())
        self._client, self._model = client, model
        self.inspection = client.load(path)
        self._names = client.session._loaded._states.names
        # Copies, so that the drawn model keeps its own.
        self._module = copy.deepcopy(model.module)

    def refusals(self, hook, workloads):
        """Those of the `workloads` that refuse a program."""

        def program(tensors):
            own = dict(self._module.named_parameters())
            with torch.no_grad():
                for target, name in self._names.items():
                    own[target].copy_(tensors[name])
                return self._module(*[tensors[name] for name in self._model.names], hook)

        return self._client.refusals(program, workloads)


def workloads():
    """As an evaluation of a winner has them."""
    from mtmc_reference.distribution import DISTRIBUTIONS, MIXED, NONFINITE

    names = [(n, name) for n, name in enumerate(DISTRIBUTIONS, start=1) if name != NONFINITE]
    as_made = [(200 + n, name) for n, name in names if n in (2, 3, 4, 9, 13, 14, 16)]
    mixed = [(number, MIXED) for number in MIXED_NUMBERS]
    return [(0,), (1,), (2,), *((100 + n, name) for n, name in names), *as_made, *mixed]


def draw(seed, count):
    """Models that are defined on their public inputs, of so many."""
    for number in range(count):
        model = Model(random.Random(f"{seed} {number}"))
        if all(model.values(model.public(seed))[0].isfinite().all() for seed in range(4)):
            yield model


def main():
    from conftest import Client

    options = generator.options(__doc__, 100)
    judged, accepted, undirected, refused = 0, 0, 0, 0
    for model in draw(options.seed, options.count):
        with tempfile.TemporaryDirectory() as folder:
            client = Client(pathlib.Path(folder))
            loaded = Judged(client, model, pathlib.Path(folder) / "problem.py")
            if loaded.refusals(nothing, workloads()):
                refused += 1
                print("an honest program is refused:", model.source())
            for program in model.programs():
                by = [name for _, *name in loaded.refusals(program, workloads())]
                judged += 1
                accepted += not by
                undirected += all(name == ["DISTRIBUTION_DIRECTED"] for name in by)
                if not by:
                    print("accepted:", program, model.source(), flush=True)
            client.session.close()
    print(f"{judged} programs: {accepted} accepted, {undirected} without directed inputs; {refused} honest ones refused")


if __name__ == "__main__":
    main()
