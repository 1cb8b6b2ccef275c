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
_ELEMENTWISE = CARRIERS | frozenset("add sub mul div neg where masked_fill relu".split())
_MOST_STEPS = 6
# Beyond what starts a search as a rule, such as -1e30 or the end of FP16; sums of a million
# elements stay in the range of FP32. Where squares are taken the second one is left.
_SIZES = (4e30, 2e6)
# What every element is moved beyond where neither leaves anything of small differences.
_BESIDE = 500.0
# Least part of the largest number of a type to keep away from.
_ROOM = 16


def is_searched(domain, name):
    """Whether an operator looks for an extremum among the elements of the input `name`."""
    return any(
        operator(node) in _EXTREMA and argument in _SEARCHED
        for node, argument, _ in domain.consumers(name, _ELEMENTWISE, _MOST_STEPS)
    )


def far(sign):
    """Ways to put every element far on one side of zero, the farthest first."""
    return (*(_far(sign * size) for size in _SIZES), _moved(sign))


def _moved(sign):
    def change(tensor, *_):
        low, high = tensor.aminmax()
        tensor.sub_(low if sign > 0 else high).add_(sign * _BESIDE)

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
