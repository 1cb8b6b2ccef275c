# SPDX-License-Identifier: Apache-2.0
"""Where a graph looks for the largest or smallest of its elements, and inputs that lie wholly
on one side there.

A program may begin such a search at any number, and is right as long as one element is beyond
it. So every element of an input that is searched is put far below zero, or far above.
"""

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
_ELEMENTWISE = CARRIERS | frozenset("abs add sub mul div neg where masked_fill relu leaky_relu".split())
_MOST_STEPS = 6
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


def is_searched(domain, name):
    """Whether an operator looks for an extremum among the elements of the input `name`."""
    return any(
        operator(node) in _EXTREMA and argument in _SEARCHED
        for node, argument, _ in domain.consumers(name, _ELEMENTWISE, _MOST_STEPS)
    )


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
