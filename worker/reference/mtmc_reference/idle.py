# SPDX-License-Identifier: Apache-2.0
"""Inputs of a graph that some operator reads and that no output depends on.

An input is idle only if no output changes by a bit when it alone has other elements, on
the public workload in two ways, and on others. What time does not suffice for is not idle.
"""

import contextlib
import functools

import torch

from . import state_ways
from .effort import Effort
from .failure import Dropped, ProblemFailure
from .precision import Arithmetic
from .workload import Key

# Seconds and runs after which nothing more is tried.
_BUDGET_SECONDS = 1.0
_MOST_RUNS = 64
# Workloads on which an input must be idle, too.
_OTHERS = (
    "DISTRIBUTION_HEAVY_TAILED",
    "DISTRIBUTION_NEGATED",
    "DISTRIBUTION_SPECIAL_ROWS",
    "DISTRIBUTION_REDRAWN",
    "DISTRIBUTION_EXTREMES",
)
_BUMP = 1024.0


class IdleFinder:
    """Looks for the idle inputs of one problem, whose `outputs` on the public `inputs` are
    given; `seed_of(word)` is a number that nobody knows."""

    def __init__(self, judge, graph, states, inputs, outputs, seed_of):
        self._judge = judge
        self._domain = judge.workloads.domain
        self._graph = graph
        self._states = states
        self._inputs = inputs
        self._outputs = outputs
        self._seed_of = seed_of
        self._runs = 0
        self._effort = None

    def find(self):
        """Names of the idle inputs."""
        self._effort = Effort(self._judge.device)
        entries = [e for e in self._graph["inputs"] if self._domain.is_read(e["name"])]
        users = [e for e in entries if e["kind"] == "KIND_USER_INPUT"]
        state = [e for e in entries if e.get("target") in self._states.names]
        return [e["name"] for e in [*users, *state] if self._is_idle(e)]

    def _is_idle(self, entry):
        with contextlib.suppress(Dropped, ProblemFailure, torch.cuda.OutOfMemoryError, _Spent):
            if self._changes_by(entry, self._inputs, self._outputs, _disturb):
                return False
            if self._changes_by(entry, self._inputs, self._outputs, state_ways.exchange):
                return False
            return not any(self._changes_on(entry, name) for name in _OTHERS)
        return False

    def _changes_on(self, entry, name):
        """Whether an output changes on another workload."""
        try:
            inputs = self._judge.workloads.draw_own(Key(0, name))
            outputs = self._run(entry, inputs)
        except (Dropped, ProblemFailure):
            return False
        return self._changes_by(entry, inputs, outputs, _disturb)

    def _changes_by(self, entry, inputs, outputs, change):
        """Whether an output changes with the elements of one input; true if nobody knows."""
        uses, seed = self._domain.uses(entry["name"]), self._seed_of(entry["name"])
        if entry["kind"] == "KIND_USER_INPUT":
            position = entry["argumentIndex"]
            value = inputs[position].clone()
            is_changed = change(value, uses, seed)
            others = [*inputs[:position], value, *inputs[position + 1 :]]
            return not is_changed or not _are_same(self._run(entry, others), outputs)
        tensor = self._states.tensor(entry["target"])
        saved = tensor.detach().clone()
        try:
            with torch.no_grad():
                is_changed = change(tensor, uses, seed)
            return not is_changed or not _are_same(self._run(entry, inputs), outputs)
        finally:
            with torch.no_grad():
                tensor.copy_(saved)

    def _run(self, entry, inputs):
        self._runs += 1
        if self._runs > _MOST_RUNS or self._effort.seconds > _BUDGET_SECONDS:
            raise _Spent
        run = functools.partial(self._judge.execution.run, inputs, Arithmetic.STRICT)
        return self._judge.peril.run(f"idle {entry['name']}", lambda: True, run)


class _Spent(Exception):
    """No time is left."""


def _disturb(tensor, uses, seed):
    """Far from what it was, where it may be; false where nothing else is known to be legal."""
    if tensor.is_floating_point() and not uses.is_probability and not uses.is_ordered:
        generator = torch.Generator(tensor.device).manual_seed(seed)
        noise = torch.randn(tensor.shape, generator=generator, device=tensor.device)
        tensor.copy_(noise.mul_(_BUMP))
        return True
    return state_ways.exchange(tensor, uses, seed + 1)


def _are_same(outputs, others):
    """Whether all bits are the same."""
    return all(
        torch.equal(y.reshape(-1).view(torch.uint8), z.reshape(-1).view(torch.uint8))
        for y, z in zip(outputs, others)
    )
