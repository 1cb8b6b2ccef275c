# SPDX-License-Identifier: Apache-2.0
"""Draws models that choose places by value, and programs that assume something of a parameter.

Routers, code books, beams and pools look for the largest of something and take what stands there.
A program is the model with one parameter that is something else where it has zeros, rows that
begin with zero, rows next to zero, or elements far beyond those of the constructor: a checkpoint
may have any of them. Whether they show is not known beforehand: a bias of zeros hides nothing.

    PYTHONPATH=worker/reference python worker/reference/tests/routed.py --seed 1
"""

import argparse
import os
import pathlib
import random
import tempfile
import warnings

import torch
from assumed import workloads

# Name: (what a constructor makes, the inputs, what forward computes of x).
_MODELS = {
    "experts": (
        "self.g = nn.Linear({d}, {e}); self.w = nn.Parameter(torch.randn({e}, {d}, {d}) * 0.2)",
        "v, i = self.g(x).softmax(-1).topk({k}, -1); y = torch.einsum('nd,nkdo->nko', x, self.w[i]);"
        " return (y * v[..., None]).sum(1)",
    ),
    "codes": (
        "self.b = nn.Parameter(torch.randn({e}, {d}))",
        "k = torch.cdist(x, self.b).argmin(1); return self.b[k], k",
    ),
    "codes by product": (
        "self.b = nn.Parameter(torch.randn({e}, {d}))",
        "k = (x @ self.b.T).argmax(1); return self.b[k], k",
    ),
    "attention to few": (
        "self.q = nn.Linear({d}, {d}); self.k = nn.Linear({d}, {d}); self.v = nn.Linear({d}, {d})",
        "v, i = (self.q(x) @ self.k(x).T / 4).topk({k} + 2, -1);"
        " return (v.softmax(-1)[..., None] * self.v(x)[i]).sum(1)",
    ),
    "ranks": (
        "self.s = nn.Linear({d}, 1)",
        "return x[self.s(x)[:, 0].argsort(descending=True)].cumsum(0)",
    ),
    "switches": (
        "self.g = nn.Linear({d}, {e}); self.s = nn.Parameter(torch.rand({e}, {d}) + 0.5)",
        "m, i = self.g(x).softmax(-1).max(-1); return torch.tanh(x * self.s[i]) * m[:, None]",
    ),
    "marks": (
        "self.g = nn.Linear({d}, {e}); self.u = nn.Parameter(torch.randn({e}, {d}))",
        "i = self.g(x).argmax(-1, keepdim=True);"
        " m = torch.zeros(x.shape[0], {e}, dtype=x.dtype, device=x.device).scatter(1, i, 1.0);"
        " return m @ self.u, m.sum(0)",
    ),
    "neighbours": (
        "self.m = nn.Parameter(F.normalize(torch.randn(64, {d}), dim=-1));"
        " self.o = nn.Parameter(torch.randn(64, {d}))",
        "i = (F.normalize(x, dim=-1) @ self.m.T).topk({k}).indices; return self.o[i].mean(1)",
    ),
}
_SOURCE = """import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        {body}

def get_inputs():
    return [torch.randn({n}, {d})]

def get_init_inputs():
    return []
"""


def _rows(is_one, instead):
    """The change of rows of which that is true."""

    def change(tensor, largest):
        shape = (-1, *[1] * (tensor.dim() - 1))
        return torch.where(is_one(tensor.flatten(1)).view(shape), instead * largest, tensor)

    return change


# What is made of a parameter whose largest element is that by the constructor.
CHANGES = {
    "bounded": lambda tensor, largest: tensor.clamp(-4 * largest, 4 * largest),
    "dead rows": _rows(lambda rows: rows[:, 0] == 0, 1.0),
    "minute rows": _rows(lambda rows: rows.abs().amax(1) < 1e-4, 0.5),
    "no zeros": lambda tensor, largest: torch.where(tensor == 0, 0.5 * largest, tensor),
}


class Routed:
    """A drawn model that a Client has loaded."""

    def __init__(self, client, kind, chance, path):
        sizes = {
            "n": chance.choice((24, 64, 130)),
            "d": chance.choice((8, 16, 33)),
            "e": chance.choice((8, 16, 24)),
            "k": chance.choice((1, 2, 3)),
        }
        init, body = (text.format(**sizes) for text in _MODELS[kind])
        path.write_text(_SOURCE.format(init=init, body=body, **sizes))
        self._client = client
        self._graph = client.load(path)["graph"]
        namespace = {}
        exec(compile(path.read_text(), str(path), "exec"), namespace)  # noqa: S102
        self._module = namespace["Model"]()
        self._largest = {t: p.abs().max().item() for t, p in self._module.named_parameters()}

    def targets(self):
        """Parameters with rows."""
        return [target for target, p in self._module.named_parameters() if p.dim() > 1]

    def refused_on(self, target=None, change=None, dtype=torch.float32):
        """The first workload that refuses the model, changed or in another type; or None."""
        program = self._program(target, change, dtype)
        for workload in workloads():
            answer = self._client.check(program, *workload)
            if answer and not answer["isCorrect"]:
                return workload
        return None

    def _program(self, target, change, dtype):
        names = {entry["target"]: entry["name"] for entry in self._graph["inputs"] if entry.get("target")}
        outputs = [entry["name"] for entry in self._graph["outputs"]]

        def program(tensors):
            state = {key: tensors[names[key]] for key in self._largest}
            if target:
                state[target] = change(state[target], self._largest[target])
            self._module.float().load_state_dict(state)
            with torch.no_grad():
                y = self._module.to(dtype)(tensors["x"].to(dtype))
            y = [each.float() if each.is_floating_point() else each for each in (y if isinstance(y, tuple) else (y,))]
            return dict(zip(outputs, y))

        return program


def kinds(chance, count):
    return chance.sample(sorted(_MODELS), min(count, len(_MODELS)))


def main():
    from conftest import Client

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", default="1")
    seed = parser.parse_args().seed
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    judged, accepted = 0, 0
    for kind in sorted(_MODELS):
        chance = random.Random(f"{seed} {kind}")
        os.urandom = chance.randbytes
        with tempfile.TemporaryDirectory() as folder:
            routed = Routed(Client(pathlib.Path(folder)), kind, chance, pathlib.Path(folder) / "p.py")
            for dtype in (torch.float32, torch.float64):
                if refused := routed.refused_on(dtype=dtype):
                    print(f"{kind}: an honest program in {dtype} is refused on {refused}")
            for target in routed.targets():
                for name, change in CHANGES.items():
                    judged += 1
                    if routed.refused_on(target, change) is None:
                        accepted += 1
                        print(f"{kind}: {target} with {name} is accepted")
    print(f"seed {seed}: {accepted} of {judged} programs accepted")


if __name__ == "__main__":
    main()
