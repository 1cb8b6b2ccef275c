# SPDX-License-Identifier: Apache-2.0
"""Judges programs, which are functions of tensors, on distributions of their inputs.

A program is accepted if it is within its class on every distribution of a problem. What is
honest in a class must be, and what is dishonest must not be accepted in KERNELBENCH.
"""

import collections
import contextlib

import torch

from mtmc_reference.comparison import Comparison
from mtmc_reference.judge import Judge
from mtmc_reference.oracle import PRECISIONS
from mtmc_reference.precision import Arithmetic, arithmetic
from mtmc_reference.steadiness import Steadiness
from mtmc_reference.tensor_type import data_type
from mtmc_reference.workload import Key, PUBLIC

STRICT, KERNELBENCH, TF32, HALF = (
    f"PRECISION_{name}" for name in ("STRICT", "KERNELBENCH", "TF32", "HALF")
)
_CPU = torch.device("cpu")
# What a dishonest program changes, at least: some have nothing to change on small values.
_EFFECT = 1e-6


class _Execution:
    """Runs a function of tensors as `execution.Execution` runs a model."""

    def __init__(self, function):
        self._function = function

    def run(self, inputs, kind, observer=None, state=None):
        if kind == Arithmetic.FP64:
            inputs = [x.double() if x.is_floating_point() else x for x in inputs]
        with torch.no_grad(), arithmetic(kind, _CPU), observer or contextlib.nullcontext():
            return [self._function(*inputs)]

    def state_of(self, key):
        return None

    def is_special(self, key):
        return False


class _Workloads:
    def __init__(self, inputs):
        self._inputs = inputs

    def draw(self, key):
        return self._inputs

    def byte_count(self):
        return 0

    def levels(self, name):
        return {}

    def is_delicate(self, name, levels):
        return False


def judged(function, inputs, program, precision, key=PUBLIC, expectation=None, **options):
    """Compared of a program on one workload."""
    expectation = expectation or expected(function, inputs, key)
    output = program(*(x.clone() for x in inputs))
    r = expectation.outputs()[0]
    specification = {
        "name": "y",
        "type": {"dataType": data_type(output.dtype), "shape": list(r.shape)},
    }
    comparison = Comparison([specification], 1, precision, lambda size: False, **options)
    entry = collections.namedtuple("Entry", "key expectation")(key, expectation)
    return comparison.compare(entry, expectation, {"y": output}, False)


def satisfied(function, inputs, program, key=PUBLIC, expectation=None):
    """The classes that accept a program, each asked by itself."""
    expectation = expectation or expected(function, inputs, key)
    return [
        name
        for name in PRECISIONS
        if judged(function, inputs, program, name, key, expectation)["isCorrect"]
    ]


def expected(function, inputs, key=PUBLIC, may_use_tf32=False):
    """The Expectation of a function on given inputs; whether PyTorch's defaults would let a
    GPU compute it in TF32, `may_use_tf32` tells."""
    judge = Judge(_Execution(function), _Workloads(inputs), _CPU, False, not may_use_tf32)
    judge._finite_outputs = [True]
    return judge.expectation(key, inputs)


# Distributions: each changes the first input.


def _rows(x):
    return x.reshape(-1, x.shape[-1])


def _zero_rows(x):
    _rows(x)[::3] = 0


def _equal_rows(x):
    rows = _rows(x)
    rows[::3] = rows[::3, :1].clone()


def _denormal_rows(x):
    _rows(x)[1::3] *= 1e-39


def _spike(x):
    flat = x.view(-1)
    places = torch.randint(flat.numel(), (8,))
    flat[places] *= 300
    flat[places[0]] *= 32


def _ramp(x):
    x.copy_(torch.linspace(-1, 1, x.numel()).reshape(x.shape))


DISTRIBUTIONS = {
    "public": lambda x: None,
    "times 3": lambda x: x.mul_(3),
    "times 0.01": lambda x: x.mul_(0.01),
    "negated": lambda x: x.neg_(),
    "offset": lambda x: x.add_(30 * x.std()),
    "heavy": _spike,
    "ramps": _ramp,
    "zero rows": _zero_rows,
    "equal rows": _equal_rows,
    "denormal rows": _denormal_rows,
    "centered": lambda x: x.sub_(x.mean()),
    "rounded": lambda x: x.mul_(2).round_().div_(2),
}
# Those that are for the classes up to KERNELBENCH, where the reference bears them.
DELICATE = {
    "minute": lambda x: x.mul_(-(2.0**-84)),
    "small": lambda x: x.mul_(2.0**-40),
    "far below": lambda x: x.add_(20 * x.square().mean().sqrt()).neg_(),
    "above": lambda x: x.add_(7 * x.std()),
    "far offset": lambda x: x.add_(150 * x.std()),
}


def _bears(function, public, inputs):
    def run(values, observer, state):
        return _Execution(function).run(values, Arithmetic.STRICT, observer)

    outputs = run(inputs, None, None)
    is_finite = all(y.isfinite().all() for y in outputs)
    return is_finite and Steadiness(run, lambda: public).is_telling(inputs, None, outputs)


def verdicts(problem, program, precision, seed, expectations=None):
    """Compared of a program by distribution, until one refuses it."""
    found = {}
    expectations = {} if expectations is None else expectations
    is_wide = precision in (STRICT, KERNELBENCH) and problem.inputs[0].dtype != torch.float16
    for name, change in {**DISTRIBUTIONS, **(DELICATE if is_wide else {})}.items():
        if name not in expectations:
            torch.manual_seed(seed)
            inputs = [x.clone() for x in problem.inputs]
            change(inputs[0])
            if name in DELICATE and not _bears(problem.function, problem.inputs, inputs):
                expectations[name] = None
                continue
            key = PUBLIC if name == "public" else Key(3, "DISTRIBUTION_TIMES_3")
            expectations[name] = (inputs, key, expected(problem.function, inputs, key))
        if expectations[name] is None:
            continue
        inputs, key, expectation = expectations[name]
        if not expectation.outputs()[0].isfinite().all():
            continue
        torch.manual_seed(seed)
        found[name] = judged(None, inputs, program, precision, key, expectation)
        if not found[name]["isCorrect"]:
            break
    return found


def is_accepted(found):
    """Whether no distribution refuses a program that is not the reference in disguise."""
    has_effect = any(a["errors"][0]["maxAbsoluteError"] > _EFFECT for a in found.values())
    return has_effect and all(a["isCorrect"] for a in found.values())
