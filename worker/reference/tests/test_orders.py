# SPDX-License-Identifier: Apache-2.0
"""What another order may give is not left to the luck of one run."""

import math

import fairness
import pytest
import torch

from mtmc_reference import honest
from mtmc_reference.compare import float_spreads
from mtmc_reference.precision import Arithmetic

_STEPS = 40
# Of 300 seeds, those of which one run in another order would refuse `by_library`.
_SEEDS = (15, 18, 47, 126, 131, 143, 153, 167, 183, 213, 231, 286)


def filters(x, place):
    """Two recursions, one after the other, of poles in the unit circle."""
    return filtered(x, torch.tanh(place))


def by_library(x, place):
    """The same with a tanh that is off by five roundings, as OpenCL allows."""
    return filtered(x, torch.tanh(place) * (1 - 5 * 2.0**-24))


def filtered(x, place):
    for a, b in place:
        first, second = 2.0 * a, (1.0 - a.abs()) * b + a.abs()
        s, t, out = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0]), []
        for step in range(_STEPS):
            y = x[:, step] + s
            s, t = t - first * y, -second * y
            out.append(y)
        x = torch.stack(out, dim=1)
    return x


def inputs(seed):
    torch.manual_seed(seed)
    return [torch.randn(16, _STEPS), torch.randn(2, 2) * (1, 2, 5, 20)[seed % 4]]


@pytest.mark.parametrize("seed", _SEEDS)
def test_a_filter_near_the_unit_circle_is_accepted(seed, monkeypatch):
    monkeypatch.setattr(honest, "_ORDER_SECONDS", math.inf)
    assert fairness.KERNELBENCH in fairness.satisfied(filters, inputs(seed), by_library)


class _Runs:
    """Outputs that are off by another number in each run."""

    def __init__(self, reference, seconds, monkeypatch):
        self.reference, self.count, self.seconds = reference, 0, 0.0
        self._each = seconds
        monkeypatch.setattr(honest, "Effort", lambda device: self)

    def __call__(self, kind, observer):
        self.count += 1
        self.seconds += self._each
        return [self.reference * (1 + 1e-3 * (self.count % 3)) if self.count != 4 else self.reference / 0]

    def found(self):
        reference = [self.reference]
        runs = honest.HonestRuns(
            self, None, False, [torch.float32], Arithmetic.FP64, reference, float_spreads(reference), None
        )
        return runs.find(Arithmetic.REORDERED)


def test_the_worst_order_counts_and_what_is_not_finite_says_nothing(monkeypatch):
    runs = _Runs(torch.ones(100, 100), 0.01, monkeypatch)
    found = runs.found()
    assert runs.count == 4
    assert found.tolerances[0] == pytest.approx(1e-3, rel=1e-3)
    assert found.groups[0].error.max() == pytest.approx(2e-3, rel=1e-3)


def test_slow_models_are_run_in_few_orders(monkeypatch):
    runs = _Runs(torch.ones(100, 100), 0.7, monkeypatch)
    assert math.isfinite(runs.found().tolerances[0])
    assert runs.count == 2
