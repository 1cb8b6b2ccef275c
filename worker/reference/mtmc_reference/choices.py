# SPDX-License-Identifier: Apache-2.0
"""Answers that are not finite because masks or labels leave nothing of a group.

The mean of nothing is NaN, its largest is an infinity. That is an answer as any other where
masks and labels alone lead to it: with floats as they were drawn it is there, too.
"""

import torch

from .distribution import EXTREMES, MIXED, RANGE_ENDS
from .precision import Arithmetic

# Distributions on which a group may be left with nothing.
_CHOICES = (EXTREMES, RANGE_ENDS, MIXED)
# One of so many elements of an output must be finite, as something is to be judged.
_LEAST_FINITE = 8


def decide(workloads, key, levels, outputs, run):
    """Whether masks and labels alone decide which outputs of a workload are not finite, and
    leave enough that is, unless everything was to be ignored.

    `levels` are the ways of the distribution, or None for those in use; `run(inputs, levels)`
    gives the outputs of others.
    """
    if key.distribution not in _CHOICES:
        return False
    if levels is None:
        levels = workloads.levels(key.recipe)
    discrete = workloads.discrete(levels)
    if not discrete:
        return False
    floats = _floats(outputs)
    is_void = workloads.is_void(key.recipe, levels)
    if not is_void and any(y.isfinite().sum() * _LEAST_FINITE < y.numel() for y in floats):
        return False
    if discrete == levels:
        return True
    others = _floats(run(workloads.draw_at(key, discrete), discrete))
    return all(torch.equal(_kinds(y), _kinds(other)) for y, other in zip(floats, others))


def decide_states(execution, key, inputs, outputs):
    """Whether masks that the model has decide alone which outputs of a workload are not finite: so
    they are with public inputs, too, and all else that it has as its constructor made it. All of
    them may be, where all is closed."""
    state = execution.with_masks_of(key)
    if state is None:
        return False
    others = execution.run(inputs, Arithmetic.STRICT, state=state)
    pairs = zip(_floats(outputs), _floats(others))
    return all(torch.equal(_kinds(y), _kinds(other)) for y, other in pairs)


def _floats(outputs):
    return [y for y in outputs if y.is_floating_point()]


def _kinds(output):
    """2 for NaN, infinities by sign, and 0 for all that is finite."""
    return torch.where(output.isnan(), 2, torch.where(output.isinf(), output.sign(), 0))
