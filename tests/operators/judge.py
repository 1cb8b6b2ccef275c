# SPDX-License-Identifier: Apache-2.0
"""What the built-in coder's first program of a case computes, beside what PyTorch does."""

import json
import os
import pathlib
import re
import subprocess
import sys

import cases
import torch

REPOSITORY = pathlib.Path(__file__).parents[2]
sys.path += [str(REPOSITORY / "worker/reference"), str(REPOSITORY / "kernel/engine/testing")]

from mtmc_reference.failure import ProblemFailure  # noqa: E402
from mtmc_reference.problem import ProblemFile  # noqa: E402
from mtmc_reference.trace import trace  # noqa: E402
from program_runner import OpenClRunner, Program, run_graph  # noqa: E402

ENGINE = pathlib.Path(os.environ.get("MTMC_BIN", "build/release/bin")) / "mtmc-engine"
# Largest error in parts of the results' mean magnitude; or four times PyTorch's own.
_BOUNDS = {torch.float32: 5e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float64: 1e-10}
_OWN_ERRORS = 4


class NotJudged(Exception):
    """The case says nothing about kernels of ours; the text says why."""


def _engine(*arguments):
    command = [str(part) for part in (ENGINE, *arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def lowered():
    """Operators for which there are kernels of ours."""
    page = _engine("operators").split("## Kernels of ours")[1].split("\n## ")[0]
    return set(re.findall(r"`(\w+)`", page))


class Judge:
    def __init__(self):
        self._runner, self._lowered = OpenClRunner(), lowered()

    def differences(self, folder, case):
        """One sentence for each result that is not PyTorch's. Raises NotJudged."""
        problem = folder / "problem.py"
        problem.write_text(case.source())
        try:
            graph, constants = self._traced(problem)
        except ProblemFailure as failure:
            raise NotJudged(f"not traced: {failure.message}") from None
        if not self._lowered & {re.split(r"::|\.", node["op"])[1] for node in graph["nodes"]}:
            raise NotJudged("calls only")
        inputs = self._inputs(graph, case, constants)
        path = folder / "graph.json"
        path.write_text(json.dumps(graph))
        program = Program(_engine("print", path, "--dialect", "opencl"))
        if any("seed=" in line for line in program.text.splitlines() if line.startswith("//@")):
            raise NotJudged("random numbers")
        run, tensors = self._runner.prepare(program, inputs)
        run()
        expected = run_graph(graph, inputs)
        exact = self._exact(graph, inputs, expected)
        found = []
        for name, value in expected.items():
            why = _difference(tensors[name], value, exact[name])
            if why:
                found.append(f"{name}: {why}")
        return found

    def _traced(self, path):
        problem = ProblemFile(str(path))
        model = problem.build_model(0, torch.device("cpu"))
        return trace(problem, model, problem.draw())[:2]

    def _inputs(self, graph, case, constants):
        values = dict(zip(case.names(), case.tensors()))
        for entry in graph["inputs"]:
            if entry["name"] not in values:
                values[entry["name"]] = constants[entry["target"]]
        return values

    def _exact(self, graph, inputs, expected):
        wide = {
            name: value.double() if value.is_floating_point() else value
            for name, value in inputs.items()
        }
        try:
            return run_graph(graph, wide, torch.float64)
        except RuntimeError:
            # Not every operator takes doubles among its other arguments.
            return expected


def _equals(got, expected):
    return (got == expected) | (got.isnan() & expected.isnan())


def _difference(got, expected, exact):
    if not expected.is_floating_point():
        count = int((got != expected).sum())
        return f"{count} of {expected.numel()} differ" if count else None
    # PyTorch's own vectors may turn an infinity into NaN, depending on the processor.
    is_same = _equals(got, expected) | (_equals(got.double(), exact.double()) & ~got.isfinite())
    is_number = got.isfinite() & exact.isfinite()
    # PyTorch's own half types overflow within an operator where ours compute in float.
    if not (is_same | is_number).all():
        return "infinities or NaN lie elsewhere"
    is_number &= expected.isfinite() | ~is_same
    if not is_number.any():
        return None
    exact = exact.double()[is_number]
    scale = exact.abs().mean().item() + 1e-30
    error = (got.double()[is_number] - exact).abs().max().item() / scale
    own = (expected.double()[is_number] - exact).abs().nan_to_num(0, 0).max().item() / scale
    if error <= max(_OWN_ERRORS * own, _BOUNDS[expected.dtype]):
        return None
    return f"off by {error:.1e} of its mean, PyTorch by {own:.1e}"
