# SPDX-License-Identifier: Apache-2.0
"""Mixed workloads in which all tensors go together.

Where each tensor goes a way of its own, a threshold is far from what it is compared with, so that
nothing is above it or everything, and a product is as far out as its factors. Who knows one of them
by its size, a maximum that begins at -8 or a frequency below 1e-4 that counts as none, is wrong
where both sides move: by the same number, by the same factor, one up as the other goes down, or
onto one grid, on which what is seldom equal is so often. A way is a function of (tensor, generator)
that changes it in place.
"""

import dataclasses

import torch

from .drawing import pick, sign, uniform
from .pieces import pieces

# Numbers of such workloads begin here (worker/verify/workloads.cc).
FIRST = 500
# Powers of ten by which tensors move and are scaled, alike or against each other.
_MOVES, _SCALES, _OPPOSED = (0.5, 6.0), (-7.0, 7.0), (1.0, 11.0)
# Steps for one deviation of a grid, most steps of an element from zero, and those of a single number:
# what is compared with a difference is twice as far.
_PER_SIZE, _STEPS, _STEPS_OF_NUMBER = (1, 2), 4, (1, 2, 4, 8)
# Room to the end of the type.
_ROOM = 64


@dataclasses.dataclass(frozen=True)
class Plan:
    """Where tensors go: each of these is a way, or None where such tensors stay."""

    inputs: object
    # Parameters and buffers of up to one axis, and of more.
    vectors: object
    matrices: object
    # Whole numbers that only arithmetic takes, and masks.
    numbers: object = None
    masks: object = None
    # What has no way here does not stay, but goes one of its own.
    is_apart: bool = False

    def called(self, wrap):
        """The Plan of what `wrap` makes of each way."""
        ways = (self.inputs, self.vectors, self.matrices, self.numbers, self.masks)
        return Plan(*(way and wrap(way) for way in ways), self.is_apart)


def plan(number, seed):
    """The Plan of the mixed workload of that number, which `seed` decides; None of one whose
    tensors go apart."""
    if number < FIRST:
        return None
    generator = torch.Generator().manual_seed(seed % 2**63)
    order = torch.randperm(len(_PLANS), generator=generator).tolist()
    generator.manual_seed((seed + 1000003 * number) % 2**63)
    return _PLANS[order[number % len(_PLANS)]](generator)


def _move(generator):
    by = sign(generator) * 10.0 ** uniform(generator, *_MOVES)
    move = _moved(by)
    return Plan(move, move, None)


def _scale(generator):
    scale = _scaled(10.0 ** uniform(generator, *_SCALES))
    return Plan(scale, scale, scale)


def _oppose(generator):
    """Inputs one way, and what they are multiplied by the other."""
    factor = 10.0 ** uniform(generator, *_OPPOSED)
    up, down = _scaled(factor), _scaled(1 / factor)
    if uniform(generator, 0, 1) < 0.3:
        return Plan(down, up, up)
    return Plan(up, down, down, _counted_on(int(factor)))


def _round(generator):
    way = _on_grid(pick(_PER_SIZE, generator))
    return Plan(way, way, way)


_PLANS = (_move, _scale, _oppose, _round)


def _moved(by):
    return lambda tensor, _: tensor.add_(by)


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
