# SPDX-License-Identifier: Apache-2.0
"""Draws models of several inputs and parameters, and programs that are wrong only where two of
them go different ways at once.

A program is the model, but for one conjunction: where one tensor is far out, minute, zero, equal,
in order, or of one structure or another, and a second one has another such trait, or is as public
ones are, its answer is half as large. A condition comes with tensors that meet it, and the program
counts only where the reference is finite on them, FP32 and fp64 agree there, and the halves show.

    PYTHONPATH=worker/reference python worker/reference/tests/mixed.py --seed 1 --count 40
"""

import contextlib
import os
import pathlib
import random
import tempfile

import generator
import torch
from assumed import workloads
from torch._decomp import core_aten_decompositions
from torch.utils._python_dispatch import TorchDispatchMode
from traits import conditions_of

# Name: (what a constructor makes, the inputs by name, what forward computes).
_MODELS = {
    "norm and product": (
        "self.g = nn.Parameter(torch.ones({d})); self.b = nn.Parameter(torch.zeros({d}));"
        " self.w = nn.Parameter(torch.randn({d}, {d}) * 0.2)",
        {"x": "torch.randn({n}, {d})", "z": "torch.rand({n}, {d})"},
        "return F.layer_norm(x, ({d},), self.g, self.b) + z @ self.w",
    ),
    "temperature": (
        "self.t = nn.Parameter(torch.tensor(1.5)); self.b = nn.Parameter(torch.zeros({c}))",
        {"x": "torch.randn({n}, {c})", "y": "torch.randint(0, {c}, ({n},))"},
        "return F.cross_entropy(x * self.t + self.b, y, reduction='none')",
    ),
    "attention": (
        "self.q = nn.Linear({d}, {d}); self.v = nn.Linear({d}, {d})",
        {
            "x": "torch.randn({n}, {d})",
            "z": "torch.randn({c}, {d})",
            "m": "torch.rand({n}, {c}) < 0.7",
        },
        "s = self.q(x) @ z.T / {d} ** 0.5;"
        " return s.masked_fill(~m, -1e4).softmax(-1) @ self.v(z)",
    ),
    "weighted bag": (
        "self.e = nn.Embedding({c}, {d}); self.w = nn.Linear({d}, {d})",
        {"i": "torch.randint(0, {c}, ({n}, {k}))", "z": "torch.rand({n}, {k})"},
        "return self.w((self.e(i) * z[..., None]).sum(1))",
    ),
    "gates": (
        "self.w = nn.Parameter(torch.randn({d}, {d}) * 0.2); self.b = nn.Parameter(torch.zeros({d}));"
        " self.s = nn.Parameter(torch.rand({d}) + 0.5)",
        {"x": "torch.randn({n}, {d})", "z": "torch.randn({n}, {d})"},
        "return torch.sigmoid(x @ self.w + self.b) * (z * self.s)",
    ),
    "messages": (
        "self.s = nn.Parameter(torch.tensor(0.7)); self.w = nn.Linear({d}, {d})",
        {"x": "torch.randn({n}, {d})", "e": "torch.randint(0, {n}, (2, {n} * 3))"},
        "return self.w(torch.zeros_like(x).index_add(0, e[1], x[e[0]] * self.s) + x)",
    ),
    "offsets": (
        "self.e = nn.Parameter(torch.randn({c}, {d})); self.s = nn.Parameter(torch.rand({d}) + 0.5)",
        {"i": "torch.randint(0, {c}, ({n},))", "o": "torch.arange(0, {n}, {k})"},
        "return F.embedding_bag(i, self.e, o, mode='sum') * self.s",
    ),
    "segments": (
        "self.w = nn.Linear({d}, {d}); self.a = nn.Parameter(torch.full((1,), 0.3))",
        {"x": "torch.randn({n}, {d})", "y": "torch.randint(0, {k}, ({n},)).sort().values"},
        "h = torch.zeros({k}, {d}, dtype=x.dtype).index_add(0, y, F.prelu(self.w(x), self.a));"
        " c = torch.zeros({k}, dtype=x.dtype).index_add(0, y, torch.ones_like(x[:, 0]));"
        " return h / c.clamp(min=1)[:, None]",
    ),
    "statistics": (
        "self.n = nn.BatchNorm1d({d}).eval(); self.w = nn.Parameter(torch.randn({d}, {d}) * 0.2)",
        {"x": "torch.randn({n}, {d})", "z": "torch.randn({n}, {d})"},
        "return torch.tanh(self.n(x)) @ self.w + z",
    ),
    "kernel": (
        "self.t = nn.Parameter(torch.tensor(0.1)); self.w = nn.Parameter(torch.randn({c}, 4))",
        {"x": "torch.randn({n}, {d})", "z": "torch.randn({c}, {d})"},
        "s = (x[:, None] - z).abs().mean(-1); return torch.exp(-s * self.t) @ self.w",
    ),
    "masked mean": (
        "self.w = nn.Linear({d}, {d}); self.g = nn.Parameter(torch.randn({d}))",
        {"x": "torch.randn({k}, {c}, {d})", "m": "torch.rand({k}, {c}) < 0.7"},
        "h = (x * m[..., None]).sum(1) / m.sum(1).clamp(min=1)[:, None];"
        " return self.w(h) * self.g",
    ),
    "three": (
        "self.a = nn.Parameter(torch.tensor(0.5)); self.c = nn.Parameter(torch.randn({d}) * 0.3)",
        {
            "x": "torch.randn({n}, {d})",
            "z": "torch.rand({n}, {d}) + 0.5",
            "u": "torch.randn({n}, 1)",
        },
        "return (x * self.a + u) / z + self.c * u",
    ),
}
SOURCE = """import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {names}):
        {body}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""
# Programs of one model, and how often a conjunction is drawn until it has a witness.
_PROGRAMS, _TRIES = 12, 80


class Program:
    """Answers half where every one of its conditions holds: (place, axis, Condition) by name of a
    tensor, of each line along its axis, which belongs to that axis of the output, or of the tensor
    as a whole where both are None."""

    def __init__(self, conditions):
        self.conditions = conditions

    def factor(self, tensors, output):
        """What the program multiplies an output by."""
        found = torch.ones((), dtype=torch.bool)
        for name, (place, axis, condition) in self.conditions.items():
            shape = [1] * output.dim()
            if place is not None:
                shape[place] = output.shape[place]
            found = found & condition.holds(lines(tensors[name], axis)).view(shape)
        return torch.where(found, 0.5, 1.0)

    def __str__(self):
        where = {None: "as a whole", 0: "by rows", -1: "by columns"}
        return " and ".join(f"{name} {c.name} {where[at]}" for name, (at, _, c) in self.conditions.items())


def lines(tensor, axis):
    """A matrix with a row for each place along an axis, or for all of a tensor."""
    if axis is None:
        return tensor.reshape(1, -1)
    return tensor.movedim(axis, 0).reshape(tensor.shape[axis], -1)


def _axes(tensor, is_parameter, output):
    """(place in the output, axis of the tensor) along which conditions may be, the likely first."""
    if tensor.dim() and not is_parameter and tensor.shape[0] == output.shape[0]:
        yield 0, 0
    if tensor.dim() and output.dim() > 1 and tensor.is_floating_point():
        for axis in (0, -1) if is_parameter else (-1,):
            if tensor.shape[axis] == output.shape[-1]:
                yield -1, axis
                break
    yield None, None


class Mixed:
    """A drawn model."""

    def __init__(self, seed):
        self.chance = chance = random.Random(seed)
        self.kind = chance.choice(sorted(_MODELS))
        sizes = {
            "n": chance.choice((24, 40, 96)),
            "d": chance.choice((8, 12, 16)),
            "c": chance.choice((7, 10, 20)),
            "k": chance.choice((3, 4, 6)),
        }
        init, inputs, body = _MODELS[self.kind]
        self.names = list(inputs)
        self.source = SOURCE.format(
            init=init.format(**sizes),
            names=", ".join(inputs),
            body=body.format(**sizes),
            inputs=", ".join(text.format(**sizes) for text in inputs.values()),
        )

    def loaded_from(self, client, path):
        """With the module of a loaded problem, whose tensors are the public ones."""
        path.write_text(self.source)
        graph = client.load(path)["graph"]
        self._output = graph["outputs"][0]["name"]
        loaded = client.session._loaded
        self._module = loaded._model
        self.targets = dict(loaded._states.names)
        self._public = [x.clone() for x in loaded._workloads.draw(loaded_public())]
        return self

    def public(self):
        """Public tensors: inputs by name, those of the model by target."""
        state = self._module.state_dict()
        found = {target: state[target].clone() for target in self.targets}
        return {**found, **{name: x.clone() for name, x in zip(self.names, self._public)}}

    @torch.no_grad()
    def run(self, tensors, dtype=torch.float32):
        everything = {**self._module.state_dict(), **tensors}
        wide = {k: x.to(dtype) if x.is_floating_point() else x for k, x in everything.items()}
        inputs = tuple(wide.pop(name) for name in self.names)
        return torch.func.functional_call(self._module, wide, inputs)

    def answers(self, output):
        """The output by name."""
        return {self._output: output}

    def programs(self):
        """Conjunctions that a witness shows."""
        public, found = self.public(), {}
        output = self.run(public)
        for _ in range(_TRIES):
            program = self._conjunction(public, output)
            if program and str(program) not in found and self._is_shown(program, public):
                found[str(program)] = program
            if len(found) == _PROGRAMS:
                break
        return list(found.values())

    def _conjunction(self, public, output):
        """Conditions of two tensors, one of them an input as often as not."""
        names = [name for name, x in public.items() if x.is_floating_point() or x.numel() > 1]
        chosen = self.chance.sample(names, 2)
        if self.chance.random() < 0.5 and all(name in self.targets for name in chosen):
            chosen[0] = self.chance.choice(self.names)
        torch.manual_seed(self.chance.getrandbits(30))
        conditions = {}
        for name in chosen:
            tensor, is_parameter = public[name], name in self.targets
            axes = list(_axes(tensor, is_parameter, output))
            place, axis = self.chance.choice((axes[0], axes[0], *axes))
            extent = lines(tensor, axis).shape[1]
            every = conditions_of(tensor, is_parameter, axis is None, extent, self.chance)
            if not every:
                return None
            conditions[name] = place, axis, self.chance.choice(every)
        return Program(conditions)

    def _is_shown(self, program, public):
        y = self.run(public)
        if (program.factor(public, y) != 1).any():
            return False
        witness = {**public, **{n: c.make(public[n]) for n, (*_, c) in program.conditions.items()}}
        y, wide = self.run(witness), self.run(witness, torch.float64)
        lost = (1 - program.factor(witness, y)) * wide
        error = (y.double() - wide).norm()
        return bool(wide.isfinite().all() and error < 1e-5 * wide.norm() and lost.norm() > 0.1 * wide.norm())


def loaded_public():
    from mtmc_reference.workload import PUBLIC

    return PUBLIC


class _Decomposed(TorchDispatchMode):
    """Each operator is what PyTorch's decomposition of it computes."""

    _TABLE = core_aten_decompositions()

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        found = self._TABLE.get(function)
        if found is None:
            return function(*arguments, **(options or {}))
        with self:
            return found(*arguments, **(options or {}))


@contextlib.contextmanager
def _decomposed():
    backends = torch.backends
    # Winograd's convolutions of NNPACK lose what lies beside far elements.
    with backends.mkldnn.flags(enabled=False), backends.nnpack.flags(enabled=False), _Decomposed():
        yield


HONEST = {
    "eager": lambda model, tensors: model.run(tensors),
    "fp64": lambda model, tensors: model.run(tensors, torch.float64).float(),
    "decomposed": lambda model, tensors: _in(_decomposed(), model, tensors),
}


def _in(context, model, tensors):
    with context:
        return model.run(tensors)


class Verdicts:
    """What an evaluation of a winner makes of one model and its programs."""

    def __init__(self, client, model):
        # (honest program, workload) that was refused, and how many were judged.
        self.refused, self.judged, self.workloads = [], 0, 0
        # Names of the distributions that refuse a program, in the order of the programs.
        self.programs = model.programs()
        self.refused_by = [[] for _ in self.programs]
        names = {**model.targets, **{name: name for name in model.names}}
        for number, *name in workloads():
            prepared = client.session.prepare(
                {"workload": number, "distribution": name[0] if name else "DISTRIBUTION_UNSPECIFIED"}
            )
            if "dropped" in prepared:
                continue
            self.workloads += 1
            seen = {}

            def answer(tensors, honest, factor=1.0):
                seen.update({key: tensors[at].clone() for key, at in names.items()})
                return model.answers(HONEST[honest](model, seen) * factor)

            for honest in HONEST:
                found = client.compare(prepared, lambda t, honest=honest: answer(t, honest))
                self.judged += 1
                if not found["isCorrect"]:
                    self.refused.append((honest, number, *name, found["message"]))
            output = model.run(seen)
            for program, by in zip(self.programs, self.refused_by):
                factor = program.factor(seen, output)
                if (factor != 1).any():
                    found = client.compare(prepared, lambda t, f=factor: answer(t, "eager", f))
                    by += [] if found["isCorrect"] else [name[0] if name else "seed"]


def drawn(seed, number, client, path):
    """Model and Verdicts of one number of a seed."""
    chance = random.Random(f"{seed} {number}")
    os.urandom = random.Random(f"{seed} {number} drawn").randbytes
    model = Mixed(chance.getrandbits(60)).loaded_from(client, path)
    return model, Verdicts(client, model)


def main():
    from conftest import Client

    options = generator.options(__doc__, 40, "--quiet")
    judged = programs = accepted = unmixed = 0
    for number in range(options.count):
        with tempfile.TemporaryDirectory() as folder:
            client = Client(pathlib.Path(folder))
            model, found = drawn(options.seed, number, client, pathlib.Path(folder) / "problem.py")
            judged += found.judged
            for each in found.refused:
                print("an honest program is refused:", model.kind, number, each, flush=True)
            for program, by in zip(found.programs, found.refused_by):
                programs += 1
                accepted += not by
                unmixed += all(name == "DISTRIBUTION_MIXED" for name in by)
                if not by and not options.quiet:
                    print("accepted:", number, model.kind, ":", program, flush=True)
            client.session.close()
    print(
        f"seed {options.seed}: of {programs} programs {accepted} accepted, {unmixed} without mixed"
        f" inputs; {judged} honest judgements"
    )


if __name__ == "__main__":
    main()
