# SPDX-License-Identifier: Apache-2.0
"""Values that a small tensor of the model has in a few workloads each.

A single number, such as a temperature, a decay or a flag, has one value in a state, and two
states show little of it. So it goes through a list of values, another one in each workload:
of the other sign, minute and large, next to the public one, where programs know it by a range.
A counter goes past the numbers with which it is compared and by which it is divided. Masks go
through the counts of what they leave, what an exponential takes is moved as a whole, and a
vector of both signs has all of either. A way is a function of (tensor, generator, is_mild) that changes it in place; None leaves
what the state has.
"""

import dataclasses
import functools
import math

import torch

from . import frames
from .drawing import pick
from .graph_domain import CARRIERS, operator
from .mask_ways import equal_rows
from .pieces import pieces, some_of_each


@dataclasses.dataclass(frozen=True)
class _Beside:
    """So far from a number with which an operator compares, or a multiple of a divisor."""

    by: int


# Parts of the public number that it becomes, and numbers whatever the public one is. A variance
# has no other sign: the reference is not finite then.
_FACTORS = (-0.5, 0.96, 1e-3, 1e3, -3.0, 0.3, 1.04)
_NUMBERS = (-18.0, 150.0, 0.02, 0.5, 1.1)
# How far from these a draw may be.
_SPREAD = 0.025
# What is no number to multiply.
_HUGE = 1e30
# Those of a counter, and by how much it is off a number where an operator turns: far from there
# most count before they compare. All of them are as many as there are workloads for them.
_COUNTS = (0, _Beside(-1), _Beside(0), (1000, 30000), (40, 1000), _Beside(0), (2, 40), 10**9)
_COUNTS += (1, _Beside(-1), _Beside(0), _Beside(-1))
# The multiples of what it is divided by are the first ones, and one above 2^16.
_FIRST_MULTIPLES, _FAR_MULTIPLE = 3, 70000
# What is added to all elements of what an exponential takes: a sigmoid is next to one at the last.
# Beyond 88 an exponential overflows where what stands around it need not.
_SHIFTS = (-8.0, None, -15.0, None, 100.0, -25.0, None, 6.0, 10.5, None)
# Those of a vector that is added to sums of inputs: the first ones while these are ordinary.
_SUM_SHIFTS = (-18.0, 10.5, None, -25.0, None, 100.0, None, 6.0, None, None)
_EXPONENTIALS = frozenset("exp exp2 expm1 softplus sigmoid".split())
# Behind these a vector that is added is still a summand of what an exponential takes.
_SUMS = CARRIERS | frozenset(
    "linear addmm convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
    "conv_transpose3d add sub rsub neg".split()
)
_MOST_STEPS = 4
# Columns of a mask that is open elsewhere, and that are closed in all rows.
_CLOSED = 3
# Part of the rows of a mask that are all one value, or nearly so.
_LEVEL = 0.75
# Most elements of a vector that goes through signs.
_MOST_SIDED = 1 << 12
# What one element of many is that are all 0 or all 1, and how many of the first are not it.
_LONE, _LEADING = 5.0, 8


def ways(tensor, uses, domain, name, turns=()):
    """Ways for workloads to take in turn; empty for a tensor whose states are enough.

    The first is for inputs with zeros, the second for ordinary ones. The last two of as many as
    there are workloads are met only by models with whole numbers or the like among their inputs.
    `uses` and `turns` are what the graph `domain` says of the tensor, which it calls `name`.
    """
    if not tensor.numel():
        return []
    # A count of booleans may be restricted, as a divisor; they are not.
    if tensor.dtype == torch.bool:
        return _flags() if tensor.numel() == 1 else _masks()
    if is_bound(uses):
        return []
    if tensor.numel() == 1:
        return _numbers(tensor, turns)
    if not tensor.is_floating_point():
        return []
    if _is_exponent(domain.consumers(name)):
        return _moved(_SHIFTS)
    # A matrix that goes through a sum is a factor there.
    if tensor.dim() == 1 and _is_exponent(domain.consumers(name, _SUMS, _MOST_STEPS)):
        return _moved(_SUM_SHIFTS)
    if tensor.dim() == 1 and tensor.numel() <= _MOST_SIDED and tensor.min() < 0 < tensor.max():
        return [None, None, functools.partial(_side, 1), functools.partial(_side, -1), None]
    return []


def _is_exponent(consumers):
    return any(operator(node) in _EXPONENTIALS for node, *_ in consumers)


def _moved(shifts):
    return [by and functools.partial(_shift, by) for by in shifts]


def lone(tensor, uses, fill):
    """The way to make all elements `fill` but one, which is far from both ends, the middle and
    the start; None where a tensor has only one, or other things are expected of it."""
    count = tensor.numel()
    is_fit = tensor.is_floating_point() and tensor.is_contiguous() and count > 1
    return functools.partial(_alone, fill) if is_fit and not is_bound(uses) else None


@torch.no_grad()
def _alone(fill, tensor, generator):
    tensor.fill_(fill)
    count = tensor.numel()
    first = min(_LEADING, (count - 1) // 2)
    place = torch.randint(first, max(count - 1, first + 1), (), generator=generator, device=generator.device)
    # The middle is looked at by those who look at a few.
    place = int(place) + (int(place) == count // 2)
    tensor.view(-1)[min(place, count - 1)] = _LONE


def met(marks):
    """The way to put half of the elements, or a single number, at one of the landmarks."""

    @torch.no_grad()
    def change(tensor, generator, _=False):
        found = pick(marks, generator).met(tensor, generator)
        stays = torch.rand(tensor.shape, generator=generator, device=tensor.device) < 0.5
        tensor.copy_(torch.where(stays, tensor, found) if tensor.numel() > 1 else found)

    return change


def may_have_frame(tensor, uses):
    """Whether a tensor of the model goes through frames."""
    is_fit = tensor.is_floating_point() and tensor.is_contiguous() and tensor.numel() > 2
    return is_fit and isinstance(tensor, torch.nn.Parameter) and not is_bound(uses)


def _framed(way):
    return lambda tensor, generator, is_mild: None if is_mild else way(tensor, generator)


def is_bound(uses):
    return uses.is_probability or uses.is_ordered or uses.is_written or uses.is_restricted


def _flags():
    return [functools.partial(_fill, False), functools.partial(_fill, True)]


def _numbers(tensor, turns):
    public = tensor.item()
    if not tensor.is_floating_point():
        most = torch.iinfo(tensor.dtype).max
        return [
            _count(count, turns, most)
            for count in _COUNTS
            if turns or not isinstance(count, _Beside)
        ]
    parts = [factor * public for factor in _FACTORS] if 0 < abs(public) < _HUGE else []
    return [functools.partial(_near, value, public) for value in (*parts, *_NUMBERS)]


def _count(count, turns, most):
    """The way to a number, or to any between two, each order of magnitude as likely."""
    if isinstance(count, _Beside):
        return functools.partial(_turn, turns, most, count.by)
    if isinstance(count, int):
        return functools.partial(_fill, min(count, most))
    low, high = (math.log(min(end, most)) for end in count)

    @torch.no_grad()
    def change(tensor, generator, _):
        drawn = torch.rand((), generator=generator, device=generator.device).item()
        tensor.fill_(int(math.exp(low + (high - low) * drawn)))

    return change


@torch.no_grad()
def _fill(value, tensor, *_):
    tensor.fill_(value)


@torch.no_grad()
def _turn(turns, most, beside, tensor, generator, _):
    """Beside one of the numbers, or a multiple of one that is a divisor; every other time at
    the first multiple above one that is none: where both are met, something happens."""

    def chosen(values):
        shape = (1,)
        place = torch.randint(len(values), shape, generator=generator, device=generator.device)
        return values[int(place)]

    number, is_divisor = chosen(turns)
    divisors = [value for value, is_one in turns if is_one]
    if is_divisor:
        number *= chosen((*range(1, _FIRST_MULTIPLES + 1), -(-_FAR_MULTIPLE // abs(number))))
    elif divisors and chosen((False, True)):
        divisor = chosen(divisors)
        number = -(-number // divisor) * divisor
    tensor.fill_(max(min(number + beside, most), 0))


@torch.no_grad()
def _side(sign, tensor, *_):
    tensor.abs_().mul_(sign)


@torch.no_grad()
def _near(value, public, tensor, generator, is_mild):
    if is_mild and 0 < abs(public) < _HUGE:
        value = math.copysign(math.sqrt(abs(value * public)), value)
    drawn = torch.rand((), generator=generator, device=generator.device).item()
    tensor.fill_(value * (1 + _SPREAD * (2 * drawn - 1)))


@torch.no_grad()
def _shift(by, tensor, _, is_mild):
    tensor.add_(by / 2 if is_mild else by)


def _masks():
    return [
        _scattered(True, False),
        _scattered(False, True),
        _closed_columns,
        _closed_rows,
        functools.partial(_fill, True),
        _scattered(None, None),
        functools.partial(_fill, False),
    ]


def _scattered(most, one):
    """Each row is `most` but for one element or a few at any place; of None by half and half."""

    @torch.no_grad()
    def change(mask, generator, _):
        for rows in pieces(mask) if mask.is_contiguous() else ():
            if most is None:
                drawn = torch.rand(rows.shape, generator=generator, device=rows.device)
                rows.copy_(drawn < 0.5)
                continue
            rows.copy_(torch.where(some_of_each(rows.shape, generator), one, most))

    return change


@torch.no_grad()
def _closed_rows(mask, generator, _):
    """Nothing is left of some rows, and all of others."""
    if mask.is_contiguous():
        equal_rows(_LEVEL)(mask, generator)


@torch.no_grad()
def _closed_columns(mask, *_):
    mask.fill_(True)
    mask[..., :_CLOSED] = False


# What a tensor has in its first and last slices, in turn.
FRAMES = tuple(_framed(way) for way in (frames.zeros, frames.of_size(1), frames.of_size(-1), frames.ones))
