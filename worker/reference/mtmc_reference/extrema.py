# SPDX-License-Identifier: Apache-2.0
"""Where a graph looks for the largest or smallest of its elements, and inputs that lie wholly
on one side there.

A program may begin such a search at any number, and is right as long as one element is beyond
it. So every element of an input that is searched is put far below zero, or far above; of a
difference the one input goes where the other does not.
"""

import collections
import functools

import torch

from .graph_domain import CARRIERS, operator

_EXTREMA = frozenset(
    """
    max min amax amin aminmax argmax argmin topk sort argsort kthvalue median nanmedian cummax
    cummin maximum minimum clamp clamp_min clamp_max softmax log_softmax _softmax _log_softmax
    logsumexp logcumsumexp max_pool1d max_pool2d max_pool3d max_pool1d_with_indices
    max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool1d adaptive_max_pool2d
    adaptive_max_pool3d fractional_max_pool2d scatter_reduce index_reduce segment_reduce
    cross_entropy_loss
    """.split()
)
_SEARCHED = ("self", "src", "input", "other")
# On the way there each element stays by itself.
_ELEMENTWISE = CARRIERS | frozenset(
    """
    abs add sub rsub mul div neg where masked_fill relu leaky_relu pad constant_pad_nd unfold im2col
    index index_select gather
    """.split()
)
# Operators of those that turn what they take around: (name, argument).
_TURNING = frozenset([("neg", "self"), ("rsub", "self"), ("sub", "other")])
_FACTORS = frozenset([("mul", "self"), ("mul", "other"), ("div", "other")])
# Where something is, and not what it is.
_PLACES = frozenset({"index", "indices", "mask", "condition"})
_MOST_STEPS = 7
# Beyond what starts a search, from -1e30 to -1e3; sums of a million elements stay in the range of
# FP32. The next ones are for products of two, three and four, those after them for exponentials,
# and for what would be lost beside a larger one.
_SIZES = (4e30, 1e18, 1e12, 1e9, 2e6, 3e5, 6e4, 1e4, 2e3)
# Before those of doubles: what starts a search of FP32 is not the least.
_OF_DOUBLES = (1e140, 1e70)
# What every element is moved beyond where none leaves anything of small differences.
_BESIDE = (2e4, 2e3, 500.0)
# Least part of the largest number of a type to keep away from.
_ROOM = 16


def side(domain, name):
    """1 where an operator looks for an extremum among the elements of the value `name`, -1 where it
    does so among what they are with the other sign, and 0 where none does."""
    return next((turn for turn, _ in _searches(domain, name)), 0)


def is_factor(domain, name):
    """Whether the elements of the value are factors of what is searched, or divisors."""
    return any(is_factor for _, is_factor in _searches(domain, name))


def _searches(domain, name):
    """(side, whether the elements are factors) of each search, the nearest first."""
    pending, seen = collections.deque([(name, 1, False, 0)]), {name}
    while pending:
        value, turn, is_factor, steps = pending.popleft()
        for node, argument, _ in domain.takers(value):
            op = operator(node)
            if op in _EXTREMA and argument in _SEARCHED:
                yield turn, is_factor
            if op not in _ELEMENTWISE or argument in _PLACES or steps == _MOST_STEPS:
                continue
            onward = -turn if (op, argument) in _TURNING else turn
            is_one = is_factor or (op, argument) in _FACTORS
            fresh = [result for result in node["results"] if result not in seen]
            seen.update(fresh)
            pending.extend((result, onward, is_one, steps + 1) for result in fresh)


def far(sign, dtype):
    """Ways to put every element of a tensor of `dtype` far on one side of zero, the farthest
    first."""
    sizes = (*_OF_DOUBLES, *_SIZES) if dtype == torch.float64 else _SIZES
    ways = [_far(sign * size) for size in sizes]
    return (*ways, *(_moved(sign * beside) for beside in _BESIDE))


def _moved(beside):
    def change(tensor, *_):
        low, high = tensor.aminmax()
        tensor.sub_(low if beside > 0 else high).add_(beside)

    return change


def _far(size):
    def change(tensor, *_):
        """From 0.5 to 1.5 times the size, in the order that the elements had."""
        largest = torch.finfo(tensor.dtype).max / _ROOM
        low, high = tensor.aminmax()
        width = torch.maximum(high, -low).clamp_(min=torch.finfo(torch.float32).tiny)
        center = max(min(size, largest), -largest)
        # The two factors apart: their product may be too large.
        tensor.div_(width).mul_(0.5 * abs(center)).add_(center)

    return change


def one_sided(sign):
    """The way to give all elements of a factor one sign. None is small: of a product that is large
    wherever the other factor is, nothing lies near zero."""
    return functools.partial(_one_sided, sign)


@torch.no_grad()
def _one_sided(sign, tensor, *_):
    mean = tensor.abs().mean()
    tensor.abs_().clamp_(min=mean if mean > 0 else 1.0).mul_(sign)
