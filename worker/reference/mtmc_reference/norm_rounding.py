# SPDX-License-Identifier: Apache-2.0
"""What rounding does to norms, their running statistics, and exponentials over their sum, as rules
of `rounding`; the form of a rule is that of `sum_rounding`."""

import dataclasses
import functools
import math

import torch

from .schema import arguments_by_name
from .sum_rounding import (
    ELEMENT_ROUNDINGS,
    EXACT_FACTOR,
    MAX_ROW_TERMS,
    MAX_TERMS,
    SUM_FACTOR,
    are_on_grid,
    axes_of,
    first_of,
    positive,
    sum_scale,
    usual_terms,
)

# Of a norm's row in which one element outweighs all others, for each of so many terms at most.
_LED_FACTOR, _MAX_LED_TERMS = 0.1, 4096
# Deviations below this have squares that FP32 does not have, and all of a number in roundings of it.
_LEAST_DEVIATION, _ALL = 2.0**-60, 2.0**24
# exp(-100) is no part of any sum, and exp(100) is infinite.
_FAR_EXPONENT = 100.0


def variance(func, args, kwargs, out, unit):
    x = args[0]
    ratio = x.mean().abs() / x.std().clamp_(min=torch.finfo(x.dtype).tiny)
    terms = max(x.numel() // max((out[0] if isinstance(out, tuple) else out).numel(), 1), 1)
    ratio *= _of_means(x, terms, unit)
    scale = positive(func, args, kwargs, out, unit) * (1.0 + ratio)
    deviation = out[0] if isinstance(out, tuple) else out
    if deviation.dtype != torch.float32:
        return scale
    # Squares that FP32 does not have are lost; a host takes them in doubles.
    least = _LEAST_DEVIATION if "std" in func._schema.name else _LEAST_DEVIATION**2
    return torch.where(deviation < least, deviation * _ALL, scale)


def _of_means(x, terms, unit):
    """What an honest mean of the elements is off by, in parts of what it usually is."""
    return EXACT_FACTOR / SUM_FACTOR if terms > 1 and are_on_grid(x, terms, unit) else 1.0


def normalized(func, args, kwargs, out, unit):
    """A norm over part of its input: errors of mean and variance, and of the division."""
    x, y = args[0], out[0]
    terms = min(x.numel() // max(_statistic(out).numel(), 1), MAX_ROW_TERMS)
    factor = ELEMENT_ROUNDINGS + SUM_FACTOR * math.sqrt(terms) + _led(terms, y, out)
    # The mean's error is that of a sum as large as the mean over the deviation.
    ratio = _offset_ratio(func._schema.name, x, y, out) * _of_means(x, terms, unit)
    return (y.abs() + _largest_weight(func, args) * (1.0 + ratio)) * factor


@dataclasses.dataclass
class Statistics:
    """A batch norm's running mean and variance, of which each is a sum of the old one and of the
    batch's, which may cancel.

    Batches are of `terms` terms a channel, which have the mean, the inverse deviation with
    `epsilon` in it, and in `wander` w of their sum; `part` of each batch is taken."""

    running_mean: torch.Tensor
    running_variance: torch.Tensor
    mean: torch.Tensor
    inverse_deviation: torch.Tensor
    wander: torch.Tensor
    terms: int
    part: float
    epsilon: float

    def scales(self):
        """Of the running mean and the running variance."""
        square = self.mean.square()
        biased = (self.inverse_deviation.pow(-2) - self.epsilon).clamp_(min=0.0)
        squares, wander = (biased + square) / self.terms, self.wander / self.terms**2
        mean_scale = sum_scale(self.terms, self.mean, squares, wander)
        variance = biased * (self.terms / max(self.terms - 1, 1))
        ratio = (square / variance).sqrt_().nan_to_num_(nan=0.0, posinf=0.0)
        root = math.sqrt(usual_terms(self.terms))
        variance_scale = variance * (SUM_FACTOR * root) * (1.0 + ratio)
        return (
            _updated(self.running_mean, self.mean, mean_scale, self.part),
            _updated(self.running_variance, variance, variance_scale, self.part),
        )


def statistics(func, args, out):
    """The Statistics that a batch norm has just written; None where it writes none."""
    given = arguments_by_name(func, args)
    is_trained = given.get("training", func._schema.name == "aten::_batch_norm_with_update")
    running_mean, running_variance = given.get("running_mean"), given.get("running_var")
    if not is_trained or running_mean is None or running_variance is None:
        return None
    x = given["input"]
    return Statistics(
        running_mean,
        running_variance,
        out[1],
        out[2],
        _channels_wander(x).to(running_mean.dtype),
        max(x.numel() // max(running_mean.numel(), 1), 1),
        given.get("momentum", given.get("exponential_average_factor")),
        given.get("eps", given.get("epsilon")),
    )


def _channels_wander(x):
    """w of the sum of each channel, as `sum_rounding.sum_wander` has it, with two reads."""
    rank = x.dim()
    inner = list(range(1, rank - 1))
    # Without the first axis, and of that alone.
    rest = x.sum(0, dtype=torch.float64) if inner else None
    of_first = x.sum([axis + 1 for axis in inner], dtype=torch.float64) if inner else x.double()
    sums = [of_first.T]
    for axis in inner:
        others = [other for other in inner if other != axis]
        sums.append(rest.sum(others) if others else rest)
    largest = [partial.cumsum(1).square_().amax(1) for partial in sums]
    return functools.reduce(torch.maximum, largest)


def _updated(new, batch, scale, part):
    """Of a running statistic that is `part` of the batch's, which is off by `scale`."""
    rest = new - batch * part
    return rest.abs_().add_(batch.abs() * part).mul_(ELEMENT_ROUNDINGS).add_(scale * part)


def _led(terms, y, out):
    """What a row adds in which one element outweighs the others: these are alike then, and so
    are the roundings of what they add to it. Known of norms along the last axes alone."""
    statistic = _statistic(out)
    if statistic.dim() != y.dim():
        return 0.0
    axes = [axis for axis, extent in enumerate(statistic.shape) if extent < y.shape[axis]]
    if not axes:
        return 0.0
    led = y.square().amax(axes, keepdim=True) / (y.numel() / statistic.numel())
    return led.clamp_(max=1.0) * (_LED_FACTOR * min(terms, _MAX_LED_TERMS))


def _offset_ratio(name, x, y, out):
    """Mean over deviation of what each element is normalized with, to broadcast to `y`."""
    statistics = [t for t in out[1:3] if t.numel()]
    if len(statistics) < 2:
        return x.mean().abs() / x.std().clamp_(min=torch.finfo(x.dtype).tiny)
    mean, deviation = statistics
    ratio = (mean * deviation).abs().to(y.dtype)
    if name == "aten::native_layer_norm":
        return ratio
    if name == "aten::native_group_norm":
        channels = y.shape[1] // ratio.shape[1]
        ratio = ratio.repeat_interleave(channels, dim=1)
        return ratio.view(*ratio.shape, *[1] * (y.dim() - 2))
    return ratio.view(-1, *[1] * (y.dim() - 2))


def _statistic(out):
    return next((t for t in out[1:] if t.numel()), out[0])


def _largest_weight(func, args):
    weight = arguments_by_name(func, args).get("weight")
    return 1.0 if weight is None else weight.abs().amax()


def weighted(func, args, kwargs, out, unit):
    """Exponentials over their sum, or the logarithm of that."""
    x = args[0]
    y = first_of(out)
    terms = min(x.numel() // max(y.numel(), 1), MAX_ROW_TERMS)
    if x.numel() == y.numel() and len(args) > 1 and isinstance(args[1], int) and x.dim():
        terms = min(x.shape[args[1]], MAX_ROW_TERMS)
    floor = 0.0 if func._schema.name == "aten::_softmax" else 1.0
    size = _exponent_size(func, args, x, y)
    return (y.abs() + floor) * (size + (ELEMENT_ROUNDINGS + SUM_FACTOR * math.sqrt(terms)))


def _exponent_size(func, args, x, y):
    """An exponent that is rounded is off by its own size: the largest one of a row that
    counts there, as far as it can be one without the row's maximum taken off. A mask of -1e9
    cannot. Broadcasts to `y`."""
    if not x.dim():
        return x.abs().clamp(min=1.0)
    axes = axes_of(args)
    most = x.amax(axes, keepdim=True)
    size = torch.where(most - x < _FAR_EXPONENT, x, most).abs().amax(axes, keepdim=True)
    size = size.clamp_(1.0, _FAR_EXPONENT)
    return size if x.dim() == y.dim() else size.reshape(y.shape)
