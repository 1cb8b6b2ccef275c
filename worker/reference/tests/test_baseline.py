# SPDX-License-Identifier: Apache-2.0
"""What the samples of a baseline are, on a device that every machine has."""

import contextlib

import pytest
import torch

from mtmc_reference.baseline import Baselines
from mtmc_reference.failure import ProblemFailure


class _Execution:
    """The model, and how often it ran."""

    def __init__(self, function):
        self.runs = 0
        self._function = function

    def model(self, x):
        self.runs += 1
        return self._function(x)

    def preserved_state(self):
        return contextlib.nullcontext()


def _baselines(function=torch.relu):
    execution = _Execution(function)
    return execution, Baselines(execution, torch.device("cpu"))


def _sample(baselines, **options):
    options = {"samples": 3, "is_cold": True, "warmups": 0, **options}
    return baselines.sample("BASELINE_EAGER", [torch.ones(100)], **options)


def test_each_sample_is_one_forward_pass():
    execution, baselines = _baselines()

    times = _sample(baselines, warmups=2)

    assert len(times.seconds) == 3 and min(times.seconds) > 0
    assert execution.runs == 5


def test_a_cpu_has_no_yardstick_and_one_launch():
    _, baselines = _baselines()

    times = _sample(baselines, with_yardstick=True)

    assert times.yardstick_seconds == []
    assert times.launches == 1


def test_a_model_that_raises_says_which_baseline():
    def broken(x):
        raise ValueError("no such thing")

    _, baselines = _baselines(broken)

    with pytest.raises(ProblemFailure, match="BASELINE_EAGER raised .*no such thing"):
        _sample(baselines)
