# SPDX-License-Identifier: Apache-2.0
"""Mixed workloads in which all tensors go together.

Where each tensor goes a way of its own, a threshold is far from what it is compared with, so that
nothing is above it or everything, and a product is as far out as its factors. Who knows one of them
by its size, a maximum that begins at -8 or a frequency below 1e-4 that counts as none, is wrong
where both sides move: by the same number, by the same factor, one up as the other goes down, or
onto one grid, on which what is seldom equal is so often. In others two rows are always alike, so
that what is the largest is so twice; sigmoids are wholly open or closed where thresholds are one;
all is as large as a guard; or what is learned is beyond a number that the graph fills with. A way
is a function of (tensor, generator) that changes it in place.
"""

import torch

from . import around, asked, frames
from .drawing import pick, sign, uniform
from .graph_numbers import GraphNumbers
from .guards import sized
from .pieces import pieces
from .plan import Plan

# Numbers of such workloads begin here (worker/verify/workloads.cc).
FIRST = 500
# Powers of ten by which tensors move and are scaled, alike or against each other.
_MOVES, _SCALES, _OPPOSED = (0.5, 6.0), (-7.0, 7.0), (1.0, 11.0)
# Those of inputs of which hardly any leaves a sigmoid between its ends.
_SATURATES = (4.0, 8.0)
# Those of how far from one inputs are, of which a logarithm is taken.
_NEAR_ONE = (-6.0, -3.0)
# Those by which what is beyond a number is larger.
_PAST = (0.1, 1.5)
# Steps for one deviation of a grid, most steps of an element from zero, and those of a single number:
# what is compared with a difference is twice as far.
_PER_SIZE, _STEPS, _STEPS_OF_NUMBER = (1, 2), 4, (1, 2, 4, 8)
# Powers of two by which such a grid is larger, before waves: squares of its elements are exact.
_FAR_POWERS = (8, 9, 10)
# Room to the end of the type.
_ROOM = 64


def plan(number, seed, numbers=GraphNumbers()):
    """The Plan of the mixed workload of that number, which `seed` decides; None of one whose
    tensors go apart. Some are about GraphNumbers."""
    if number < FIRST:
        return asked.plan(number, seed, numbers.asks)
    plans = [*_PLANS, *[_guard] * bool(numbers.sizes), *[_beyond] * bool(numbers.others)]
    plans += [_near_one] * numbers.has_logarithm + [_round_far] * numbers.has_wave
    generator = torch.Generator().manual_seed(seed % 2**63)
    order = torch.randperm(len(plans), generator=generator).tolist()
    generator.manual_seed((seed + 1000003 * number) % 2**63)
    return plans[order[number % len(plans)]](generator, numbers)


def _move(generator, _):
    by = sign(generator) * 10.0 ** uniform(generator, *_MOVES)
    move = _moved(by)
    # Of distances to what is learned, such as centers, a matrix is no factor.
    return Plan(move, move, move if uniform(generator, 0, 1) < 0.3 else None)


def _scale(generator, _):
    scale = _scaled(10.0 ** uniform(generator, *_SCALES))
    return Plan(scale, scale, scale)


def _oppose(generator, _):
    """Inputs one way, and what they are multiplied by the other."""
    factor = 10.0 ** uniform(generator, *_OPPOSED)
    up, down = _scaled(factor), _scaled(1 / factor)
    if uniform(generator, 0, 1) < 0.3:
        return Plan(down, up, up)
    return Plan(up, down, down, _counted_on(int(factor)))


def _round(generator, _):
    way = _on_grid(pick(_PER_SIZE, generator))
    return Plan(way, way, way)


def _round_far(generator, _):
    """Of waves the angles are far from zero, and short, so that products of them are exact: what an
    intrinsic makes of them is its own."""
    factor = 2 ** pick(_FAR_POWERS, generator)
    way, scale = _on_grid(pick(_PER_SIZE, generator)), _scaled(float(factor))

    def inputs(tensor, generator):
        way(tensor, generator)
        scale(tensor, generator)

    return Plan(inputs, way, way, _counted_on(factor))


def _pair(generator, _):
    """Of what the model has each row and each column is there twice; sometimes of inputs each
    column."""
    way = _in_pairs(0, -1)
    return Plan(_in_pairs(-1) if uniform(generator, 0, 1) < 0.25 else None, way, way, is_for_all=True)


def _saturate(generator, _):
    """What goes from zero to one is at either end, where a threshold may be, too."""
    threshold = _filled(pick((1.0, 1.0, 1.0, 0.0), generator))
    inputs = _scaled(10.0 ** uniform(generator, *_SATURATES))
    return Plan(inputs, threshold, None, is_for_all=True)


def _guard(generator, numbers):
    """Inputs and what the model has are of the size of one guard, matrices sometimes."""
    way = sized([pick(numbers.sizes, generator)])
    return Plan(way, way, way if uniform(generator, 0, 1) < 0.3 else None, is_for_all=True)


def _beyond(generator, numbers):
    """What is learned is next to a number that the graph fills, compares or bounds with, beyond it,
    or that number here and there, and so are inputs sometimes."""
    value = pick(numbers.others, generator) * pick((1, 1, 1, 1, -1), generator)
    past, near = _past(value), around.near(value)
    way = pick((past, past, past, near, _meeting(value)), generator)
    inputs = way if uniform(generator, 0, 1) < 0.3 else None
    return Plan(inputs, way, None, None, _close(pick((0.5, 1.0), generator)), is_for_all=True)


def _near_one(generator, _):
    """Inputs are next to one, where intrinsics lose what a logarithm is; what the model has is as
    it was, or as much larger, as exponents may be."""
    near = 10.0 ** uniform(generator, *_NEAR_ONE)
    larger = _scaled(1 / near) if uniform(generator, 0, 1) < 0.5 else None
    return Plan(_next_to_one(near), larger, None, is_for_all=True)


def _next_to_one(near):
    def change(tensor, _):
        largest = max(abs(end.item()) for end in tensor.aminmax())
        tensor.mul_(near / largest if largest else 0.0).add_(1)

    return change


def _frame(generator, _):
    """What one looks at is zero, or one number of either sign."""
    inputs = pick((frames.zeros, frames.zeros, frames.of_size(1), frames.of_size(-1)), generator)
    way = pick((None, frames.zeros, frames.of_size(1)), generator)
    return Plan(inputs, way, way, is_for_all=True)


_PLANS = (_move, _scale, _oppose, _round, _pair, _saturate, _frame)


def _close(part):
    """So many rows of a mask are closed, where the graph fills; all of a vector."""

    def change(mask, generator):
        for rows in pieces(mask) if mask.dim() > 1 else [mask.view(1, -1)]:
            is_closed = torch.rand(len(rows), 1, generator=generator, device=rows.device) < part
            rows.masked_fill_(is_closed | (mask.dim() < 2), False)

    return change


def _filled(value):
    return lambda tensor, _: tensor.fill_(value)


def _in_pairs(*axes):
    """Every other slice along each axis is what the one before it is."""

    def change(tensor, _):
        for axis in axes:
            rows = tensor.movedim(axis, 0) if tensor.dim() else tensor.view(1)
            rows[1::2] = rows[: len(rows) // 2 * 2 : 2].clone()

    return change


def _past(value):
    """Beyond a number, all of it, or here and there."""

    def change(tensor, generator):
        power = torch.rand(tensor.shape, generator=generator, device=tensor.device)
        far = torch.pow(10.0, power.to(torch.float64).mul_(_PAST[1] - _PAST[0]).add_(_PAST[0]))
        most = torch.finfo(tensor.dtype).max / _ROOM
        stays = torch.rand(tensor.shape, generator=generator, device=tensor.device)
        stays = stays < pick((0.0, 0.0, 0.7), generator)
        tensor.copy_(torch.where(stays, tensor.double(), (value * far).clamp_(-most, most)))

    return change


def _moved(by):
    return lambda tensor, _: tensor.add_(by)


def _meeting(value):
    """About half of the elements are that number."""

    def change(tensor, generator):
        is_met = torch.rand(tensor.shape, generator=generator, device=tensor.device) < 0.5
        tensor.masked_fill_(is_met, value)

    return change


def _scaled(factor):
    def change(tensor, _):
        most = torch.finfo(tensor.dtype).max / _ROOM
        largest = max(abs(end.item()) for end in tensor.aminmax())
        tensor.mul_(min(factor, most / largest) if largest else 1.0)

    return change


def _counted_on(factor):
    def change(tensor, _):
        largest = max(abs(end.item()) for end in tensor.aminmax())
        tensor.mul_(max(min(factor, torch.iinfo(tensor.dtype).max // max(largest, 1)), 1))

    return change


def _on_grid(per_size):
    """Multiples of a power of two that is about a deviation, each row of a few of them."""

    def change(tensor, generator):
        size = tensor.to(torch.promote_types(tensor.dtype, torch.float32)).square().mean().sqrt()
        step = torch.exp2((size if size > 0 else size + 1).log2().round()) / per_size
        if tensor.numel() == 1:
            tensor.copy_((step * pick(_STEPS_OF_NUMBER, generator)).copysign(tensor))
            return
        for rows in pieces(tensor):
            shape, device = (len(rows), 1), rows.device
            most = torch.randint(1, _STEPS + 1, shape, generator=generator, device=device)
            places = (rows.to(step.dtype) / step).round_()
            places = torch.where(places.abs() > most, places.fmod(most + 1), places)
            rows.copy_(places.mul_(step))

    return change
