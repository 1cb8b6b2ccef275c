# SPDX-License-Identifier: Apache-2.0
"""Exported files of drawn problems, as programs of the built-in coder, in plain PyTorch on the
host's OpenCL device. MTMC_SEED repeats a run, MTMC_DRAWS sets how many problems it draws."""

import importlib.util
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys

import drawn
import nested
import pytest
import torch

BIN = pathlib.Path(os.environ.get("MTMC_BIN", "build/release/bin"))
REFERENCE = pathlib.Path(__file__).parents[2] / "worker/reference"
DRAWS = int(os.environ.get("MTMC_DRAWS", "8"))
SEED = int(os.environ.get("MTMC_SEED", random.SystemRandom().randrange(10**6)))
TOLERANCE = 1e-4
_numbers = itertools.count()

sys.path.append(str(REFERENCE))
pytest.importorskip("pyopencl")


def run(*command):
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def export(folder, source, name="problem"):
    """The module of the exported file of a problem, with its path."""
    from mtmc_reference.graph_of import graph_of

    problem, graph = folder / f"{name}.py", folder / f"{name}.json"
    program, exported = folder / f"{name}.program", folder / f"{name}_mtmc.py"
    problem.write_text(source)
    graph.write_text(json.dumps(graph_of(problem)))
    program.write_text(run(BIN / "mtmc-engine", "print", graph, "--dialect", "opencl"))
    run(BIN / "mtmc-exporter", graph, program, problem, "--out", exported)
    # torch.compile remembers modules by name.
    spec = importlib.util.spec_from_file_location(f"exported_{next(_numbers)}", exported)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def built(module, name):
    torch.manual_seed(42)
    arguments = module.get_init_inputs()
    torch.manual_seed(42)
    return getattr(module, name)(*arguments)


def drawn_inputs(module, seed):
    torch.manual_seed(seed)
    return module.get_inputs()


@pytest.mark.parametrize("draw", range(DRAWS))
def test_an_export_returns_what_the_model_returns(tmp_path, draw):
    source = drawn.Drawn(f"{SEED}:{draw}").source
    print(f"MTMC_SEED={SEED}\n{source}")
    module = export(tmp_path, source)
    model, winner = built(module, "Model"), built(module, "ModelNew")
    for seed in (1, 2):
        inputs = drawn_inputs(module, seed)
        with torch.no_grad():
            expected, got = model(*inputs), winner(*nested.reordered(inputs))

        assert nested.difference(got, expected, TOLERANCE) is None
        shared = [
            nested.sharing(answer, [*nested.tensors(inputs), owner.weight, owner.offset])
            for answer, owner in ((got, winner), (expected, model))
        ]
        assert shared[0] == shared[1], "other tensors are the same one, or handed back"
        assert nested.difference(list(winner.buffers()), list(model.buffers()), TOLERANCE) is None


@pytest.mark.parametrize("draw", range(max(DRAWS // 2, 1)))
def test_a_compiled_caller_takes_an_export_as_a_whole(tmp_path, draw):
    source = drawn.Drawn(f"{SEED}:compiled:{draw}").source
    print(f"MTMC_SEED={SEED}\n{source}")
    module = export(tmp_path, source)
    model, winner = built(module, "Model"), built(module, "ModelNew")
    torch._dynamo.reset()
    compiled = torch.compile(lambda *inputs: [winner(*inputs), 1], fullgraph=True, backend="aot_eager")
    for seed in (1, 2):
        inputs = drawn_inputs(module, seed)
        with torch.no_grad():
            expected, got = [model(*inputs), 1], compiled(*inputs)

        assert nested.difference(got, expected, TOLERANCE) is None
        assert nested.difference(list(winner.buffers()), list(model.buffers()), TOLERANCE) is None


_PLAIN = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))

    def forward(self, x, options, factor=2.0):
        return x * self.weight * factor + options["bias"][0]


def get_inputs():
    return [torch.randn(3, 4), {"bias": [torch.randn(4)], "mode": "mean"}, 2.0]


def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    module = export(tmp_path_factory.mktemp("plain"), _PLAIN, "plain")
    return built(module, "Model"), built(module, "ModelNew"), drawn_inputs(module, 3)


@torch.no_grad()
def test_keywords_and_defaults_are_those_of_the_model(plain):
    model, winner, (x, options, factor) = plain
    expected = model(x, options, factor)

    for got in (winner(x, options), winner(x, factor=2, options=options), winner(options=options, x=x)):
        assert torch.allclose(got, expected)


@torch.no_grad()
def test_other_plain_arguments_are_refused(plain):
    _, winner, (x, options, _) = plain
    with pytest.raises(ValueError, match=r"arguments\[2\] == 2.0"):
        winner(x, options, 3.0)
    with pytest.raises(ValueError, match='"mode"'):
        winner(x, {**options, "mode": "sum"})
    with pytest.raises(ValueError, match="len"):
        winner(x, {**options, "bias": [x, x]})
    with pytest.raises(TypeError, match="missing"):
        winner(x)


def test_gradients_are_refused_and_results_are_right(plain):
    model, winner, inputs = plain

    got = winner(*inputs)

    assert torch.allclose(got, model(*inputs))
    with pytest.raises(RuntimeError, match="no backward pass"):
        got.sum().backward()
    assert winner.weight.grad is None


def test_an_export_is_exported_again(plain):
    model, winner, inputs = plain
    with torch.no_grad():
        program = torch.export.export(winner, tuple(inputs), strict=False)
        assert torch.allclose(program.module()(*inputs), model(*inputs))
