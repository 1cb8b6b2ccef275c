# SPDX-License-Identifier: Apache-2.0
"""Draws models that have an edge somewhere, and programs that are the model but for that edge.

An edge is an epsilon beside a sum, the number at which a softplus or a search begins, a tie, a
threshold that is met, a mask under which nothing is left, a feature that is small. A program leaves
out what the model has for it. A witness stands beside each: changes of the tensors on which FP32
and fp64 agree about the model, and the program is far away.

    PYTHONPATH=worker/reference python worker/reference/tests/edges.py --seed 1 --count 80
"""

import collections
import math
import os
import pathlib
import random
import re
import tempfile

import bound_models
import carry_models
import chain_models
import decay_models
import domain_models
import edge_models
import exact_models
import formula_models
import generator
import guard_models
import logit_models
import many_models
import mixed
import packed_models
import slip_models
import tied_models
import torch
import window_models
from assumed import workloads

# Numbers of mixed workloads that are made for one program.
_OWN_NUMBERS = range(617, 625)
_FAR, _LEAST = 1e-2, 1e-30
_MODULES = (edge_models, formula_models, slip_models, guard_models, bound_models, many_models)
_MODULES += (tied_models, exact_models, window_models, chain_models, packed_models, carry_models)
_MODULES += (decay_models, logit_models, domain_models)
OPEN = many_models.OPEN | chain_models.OPEN | logit_models.OPEN
# Classes whose programs are right on what `get_inputs` draws only as their site has it.
_SHOWN = frozenset(domain_models.MODELS)
MODELS = {edge: models for module in _MODULES for edge, models in module.MODELS.items()}


class Drawn:
    """A model and one program of it, of a class of edge_models."""

    def __init__(self, edge, chance):
        self.edge = edge
        self.kind, model = chance.choice(sorted(MODELS[edge].items()))
        sizes = {
            "n": chance.choice((16, 24, 40)),
            "d": chance.choice((8, 12, 16)),
            "e": chance.choice((6, 8, 16)),
            "k": chance.choice((3, 4, 6)),
            "eps": chance.choice(("1e-12", "1e-8", "1e-6", "1e-5")),
            "start": chance.choice(("-1e4", "-1e9", "-1e30")),
            "fill": chance.choice(("-1e4", "-1e9", "-3e4")),
            "t": chance.choice(("0.9", "0.75", "0.6")),
        }
        self._names = list(model.inputs)
        right, wrong = chance.choice(model.sites)
        self.title = f"{self.kind}: {right} as {wrong}".format(**sizes)
        self._texts = [
            mixed.SOURCE.format(
                init=model.init.format(**sizes),
                names=", ".join(model.inputs),
                body=model.body.replace("SITE", f"({site})").format(**sizes),
                inputs=", ".join(text.format(**sizes) for text in model.inputs.values()),
            )
            for site in (right, wrong, *model.alike)
        ]
        found = model.witness if isinstance(model.witness, tuple) else (model.witness,)
        self._witnesses = [text.format(**sizes) for text in found]
        self._reference, self._program, *self._alike = map(_made, self._texts)

    @property
    def source(self):
        return self._texts[0]

    @property
    def numbers(self):
        """Those that stand in the program."""
        body = self._texts[1].split("forward")[1].split("def get_inputs")[0]
        found = re.findall(r"(?<![\w.])\d+\.?\d*(?:e-?\d+)?", body)
        return sorted({float(text) for text in found})

    @torch.no_grad()
    def run(self, module, tensors, dtype=None):
        """With inputs and the model's tensors by name."""
        if dtype:
            tensors = {k: x.to(dtype) if x.is_floating_point() else x for k, x in tensors.items()}
        state = {name: tensors[name] for name in module.state_dict()}
        return torch.func.functional_call(module, state, tuple(tensors[n] for n in self._names))

    @torch.no_grad()
    def is_public(self):
        """Whether the public inputs show the program."""
        tensors = self._public(0)
        return not torch.equal(self.run(self._reference, tensors), self.run(self._program, tensors))

    def has_witness(self):
        return any(self._is_witness(text, seed) for text in self._witnesses for seed in range(3))

    def _is_witness(self, text, seed):
        t = self._public(seed)
        try:
            exec(text, {"torch": torch, "t": t})
            expected = self.run(self._reference, t).double()
            exact = self.run(self._reference, t, torch.float64).double()
            actual = self.run(self._program, t).double()
        except (IndexError, RuntimeError):
            # A vector has no columns, and a row of six no seven largest.
            return False
        if not torch.equal(exact.isnan(), expected.isnan()):
            return False
        finite = exact.isfinite()
        unit = _FAR * max(_LEAST, exact[finite].abs().max().item() if finite.any() else 0.0)
        if ((expected - exact)[finite].abs() > 0.1 * unit).any():
            return False
        return not torch.equal(actual.isnan(), exact.isnan()) or not ((actual - exact)[finite].abs() <= unit).all()

    def _public(self, seed):
        """Inputs by name, and the model's tensors as they were made."""
        torch.manual_seed(seed)
        names = {}
        exec(self._texts[0], names)
        state = {k: x.clone() for k, x in self._reference.state_dict().items()}
        return state | dict(zip(self._names, names["get_inputs"]()))

    def load(self, client, path):
        """Has the problem loaded."""
        path.write_text(self.source)
        graph = client.load(path)["graph"]
        self._places = {name: name for name in self._names}
        self._places |= {e["target"]: e["name"] for e in graph["inputs"] if e.get("target")}
        self._output = graph["outputs"][0]["name"]

    def refusals(self, client, is_program):
        """Workloads that refuse the program, or the model as it is, in fp64 and in other words, which
        are numbered."""
        modules = [(self._program, None)]
        if not is_program:
            modules = [(self._reference, None), (self._reference, torch.float64), *((each, None) for each in self._alike)]
        own = [(number, "DISTRIBUTION_MIXED") for number in _OWN_NUMBERS]
        found = []
        for number, *name in [*workloads(), *own]:
            request = {"workload": number, "distribution": name[0] if name else "DISTRIBUTION_UNSPECIFIED"}
            if number in _OWN_NUMBERS:
                request |= {"salt": "7", "numbers": self.numbers}
            prepared = client.session.prepare(request)
            if "dropped" in prepared:
                continue
            for place, (module, dtype) in enumerate(modules):

                def answer(tensors):
                    state = self._reference.state_dict()
                    state |= {key: tensors[name] for key, name in self._places.items() if name in tensors}
                    y = self.run(module, state, dtype)
                    return {self._output: y if dtype is None or not y.is_floating_point() else y.to(self._dtype(y, state))}

                if not client.compare(prepared, answer)["isCorrect"]:
                    found.append((number, *name, *[place] * (len(modules) > 1)))
        return found

    def _dtype(self, y, state):
        """That of the model's answer."""
        return self.run(self._reference, state).dtype


def _made(text):
    torch.manual_seed(0)
    names = {}
    exec(text, names)
    return names["Model"]()


def draw(seed, count, edges=None):
    """So many that have a witness, each class in turn, other ones for another seed."""
    edges = edges or sorted(MODELS)
    chance = random.Random(f"{seed} {edges}")
    found, tried = 0, 0
    while found < count:
        drawn = Drawn(edges[found % len(edges)], chance)
        tried += 1
        if drawn.has_witness() and not (drawn.edge in _SHOWN and drawn.is_public()):
            found += 1
            yield drawn
        elif tried > 40 * count:
            raise ValueError(f"no witness of {drawn.title}")


def main():
    from conftest import Client
    from mtmc_reference import judge

    # However slow the host is.
    judge._MIXED_SECONDS = judge._OWN_SECONDS = math.inf
    options = generator.options(__doc__, 80, "--honest")
    edges = [e for e in sorted(MODELS) if e[0] in os.environ.get("MTMC_EDGES", e)]
    accepted, judged, refused = collections.Counter(), collections.Counter(), 0
    for number, drawn in enumerate(draw(options.seed, options.count, edges)):
        os.urandom = random.Random(f"{options.seed} {number}").randbytes
        with tempfile.TemporaryDirectory() as folder:
            client = Client(pathlib.Path(folder))
            drawn.load(client, pathlib.Path(folder) / "problem.py")
            if options.honest and (by := drawn.refusals(client, is_program=False)):
                refused += 1
                print("an honest program is refused:", drawn.edge, drawn.title, by, flush=True)
            judged[drawn.edge] += 1
            if not drawn.refusals(client, is_program=True):
                accepted[drawn.edge] += 1
                print("accepted:", drawn.edge, drawn.title, flush=True)
            client.session.close()
    each = ", ".join(f"{edge} {accepted[edge]} of {judged[edge]}" for edge in sorted(judged))
    print(f"seed {options.seed}: {accepted.total()} of {judged.total()} accepted ({each}); {refused} honest ones refused")


if __name__ == "__main__":
    main()
