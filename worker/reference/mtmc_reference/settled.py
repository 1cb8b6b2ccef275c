# SPDX-License-Identifier: Apache-2.0
"""Results that no honest program rounds otherwise: what has reached the end of its range, and sums
of whole numbers, or of multiples of 1/256.

A sigmoid of 60 is one in FP32 and in fp64, whoever computes it, and so is what a softmax makes of
an element far beyond all others of its row. A sum of ones and zeros is the same in any order. Where
a threshold is met exactly there, rounding does not decide what the reference answers.

A rule (args, result, unit) tells which elements those are, as a mask that broadcasts to the result.
"""

import torch

from . import sum_rounding

# What lies beyond rounds to the end of the range in fp64, too: the rest is below 1e-17.
_SIGMOID, _TANH, _ERF, _REST = 40.0, 20.0, 6.1, 1e-17
# Numbers on such a grid are steps of money, of levels, of counts.
_STEPS_OF_ONE = 256.0
# Elements along each axis that tell whether others may be on it.
_SOME = 8


def _of_softmax(args, y, unit):
    is_one = y == 1
    if not y.dim() or not is_one.any():
        return None
    return is_one & (y.masked_fill(is_one, 0.0).sum(args[1], keepdim=True) < _REST)


def _of_sum(args, total, unit):
    x, axes = args[0], sum_rounding.axes_of(args)
    if not x.is_floating_point():
        return None
    x, total = _in_steps(x, total)
    # A sum of others is seldom whole.
    if not (total == total.round()).any():
        return None
    is_whole = (x == x.round()).all(axes) if axes else x == x.round()
    return (is_whole & (x.abs().sum(axes) <= 1 / unit)).reshape(total.shape)


def _of_running_sum(args, total, unit):
    x, axis = args[0], args[1]
    if not x.is_floating_point() or not x.dim():
        return None
    x, total = _in_steps(x, total)
    if not (total == total.round()).all(axis).any():
        return None
    is_whole = (x == x.round()).all(axis, keepdim=True)
    return is_whole & (x.abs().sum(axis, keepdim=True) <= 1 / unit)


def _in_steps(x, total):
    """Both by the step of a finer grid, where some elements are on that and not whole."""
    some = x[(slice(_SOME),) * x.dim()]
    steps = some * _STEPS_OF_ONE
    if bool((some == some.round()).all()) or not bool((steps == steps.round()).all()):
        return x, total
    return x * _STEPS_OF_ONE, total * _STEPS_OF_ONE


def _beyond(end):
    """The rule of a function that is odd, and ends there."""
    return lambda args, y, unit: _if_any((args[0] > end) | (args[0] < -end))


def _if_any(mask):
    """None for one that is nowhere set: what is disturbed everywhere takes one pass."""
    return mask if mask.any() else None


RULES = {
    "sigmoid": lambda args, y, unit: _if_any(args[0] > _SIGMOID),
    "tanh": _beyond(_TANH),
    "erf": _beyond(_ERF),
    "exp": lambda args, y, unit: _if_any(args[0] == 0),
    "_softmax": _of_softmax,
    "sum": _of_sum,
    "cumsum": _of_running_sum,
}
