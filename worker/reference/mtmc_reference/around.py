# SPDX-License-Identifier: Apache-2.0
"""Mixed workloads around a number that stands in the program and not in its problem.

A capacity of 40, a pad of -1e4, an exponent below 88 that nobody will exceed: who assumes what no
input promises writes down where the assumption ends. So what may become the best meets its own
numbers, as the dictionary of a fuzzer brings the constants of what it tests: elements next to such
a number and beyond it, tensors of its size, so many elements that stand out, and rows that end or
begin at so many places. A way is a function of (tensor, generator) that changes it in place.
"""

import math

import torch

from . import joined
from .drawing import pick, uniform
from .pieces import pieces
from .plan import Plan

# How often parameters and buffers go a way of their own.
_APART = 0.3
# Most bits by which a number may be moved.
_MOST_BITS = 48
# Largest number that is taken for a count.
_MOST_COUNT = 1 << 12
# Powers of ten: of the distance to the number in parts of it, how far beyond it elements are, and
# the largest of a tensor to either side of it.
_NEAR, _BEYOND, _SIZE = (-6.0, -1.0), 1.5, 1.0
# How far a tensor is moved, in the number, and what a single number becomes.
_MOVES, _OF_NUMBER = (1.0, 3.0), (-2.0, 0.5, 1.0, 1.01, 2.0, 30.0)
# Factor of what stands before or behind a place, if it is not zero.
_LITTLE = 1e-4
# Room to the end of the type, and elements up to which a tensor is one row.
_ROOM, _MOST_IN_ROW = 64, 1 << 22


def plan(number, around, seed):
    """The Plan of the workload of that number; `around` is a positive number, with which workloads
    of consecutive numbers do other things."""
    is_count = 2 <= around <= _MOST_COUNT and around == math.floor(around)
    count = int(around) if is_count else 0
    ways = [_moved(around), _moved(-around), near(around), near(-around), _sized(around), None]
    if is_count:
        ways = [standing_out(count), _cut(count), _run(count), *ways[1:4], None]
    generator = torch.Generator().manual_seed(seed % 2**63)
    order = torch.randperm(len(ways), generator=generator).tolist()
    generator.manual_seed((seed + 1000003 * number) % 2**63)
    alike = ways[order[number % len(order)]]
    others = [way for way in ways if way is not None]

    def way_of(kind):
        if alike is None:
            return pick(others, generator)
        return None if kind and uniform(generator, 0, 1) < _APART else alike

    floats = [way_of(kind) for kind in range(3)]
    counted = (pick(_whole(around, count), generator), opened(count) if is_count else None)
    return Plan(*floats, *counted, is_apart=True)


def _whole(number, count):
    """Ways of whole numbers about a number: that, steps of it, or as many bits."""
    is_whole = number == math.floor(number)
    found = [whole(count)] if count else []
    found += [joined.at(int(number))] if is_whole and number > 1 else []
    found += [joined.at(1 << int(number))] if is_whole and 1 < number <= _MOST_BITS else []
    return found or [None]


def _drawn(shape, generator, low=0.0, high=1.0):
    drawn = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64)
    return drawn * (high - low) + low


def _write(rows, found):
    most = torch.finfo(rows.dtype).max / _ROOM
    rows.copy_(found.clamp_(-most, most))


def near(value):
    """Rows below it, beyond it, on both sides, or as they were but for one element beyond; as often
    as not all alike."""

    def change(tensor, generator):
        if tensor.numel() == 1:
            _write(tensor, torch.full_like(tensor, value * pick(_OF_NUMBER, generator)))
            return
        of_all = pick((0, 1, 1, 1, 2, None, None), generator)
        for rows in pieces(tensor):
            kind = torch.randint(4, (len(rows), 1), generator=generator, device=rows.device)
            if of_all is not None:
                kind.fill_(of_all)
            side = torch.where(_drawn(rows.shape, generator) < 0.5, 1.0, -1.0)
            side = torch.where(kind == 0, -1.0, torch.where(kind == 1, 1.0, side))
            near = 1 + side * torch.pow(10.0, _drawn(rows.shape, generator, *_NEAR))
            far = torch.pow(10.0, side * _drawn(rows.shape, generator, 0.0, _BEYOND))
            draw = _drawn(rows.shape, generator)
            found = value * torch.where(draw < 0.4, near, torch.where(draw < 0.5, 1.0, far))
            place = torch.randint(rows.shape[1], (len(rows), 1), generator=generator, device=rows.device)
            beyond = value * torch.pow(10.0, _drawn(place.shape, generator, 0.0, _BEYOND))
            one = rows.double().scatter(1, place, beyond)
            _write(rows, torch.where(kind == 3, one, found))

    return change


def _sized(value):
    """The largest of a tensor, or of each row, is about as large."""

    def change(tensor, generator):
        is_by_rows = uniform(generator, 0, 1) < 0.5
        whole = 10.0 ** uniform(generator, -_SIZE, _SIZE)
        largest = max(abs(end.item()) for end in tensor.aminmax())
        for rows in pieces(tensor):
            size, power = largest or 1.0, whole
            if is_by_rows:
                size = rows.abs().amax(1, keepdim=True).double()
                size = torch.where(size > 0, size, 1.0)
                power = torch.pow(10.0, _drawn((len(rows), 1), generator, -_SIZE, _SIZE))
            _write(rows, rows.double() / size * (abs(value) * power))

    return change


def _moved(value):
    def change(tensor, generator):
        by = value * uniform(generator, *_MOVES)
        for rows in pieces(tensor):
            _write(rows, rows.double() + by)

    return change


# With a count. Rows here are all that have more elements, along any axis.


def _by_rows(count, kind):
    """`kind(rows, generator)` to other rows of a tensor, which all have more than `count` elements;
    elements near the number where it has no such rows."""

    def change(tensor, generator):
        axes = [axis for axis, extent in enumerate(tensor.shape) if extent > count]
        if tensor.numel() > _MOST_IN_ROW or not axes and tensor.numel() <= count:
            near(float(count))(tensor, generator)
            return
        moved = tensor.movedim(pick(axes, generator), -1) if axes else tensor.view(1, -1)
        rows = moved.reshape(-1, moved.shape[-1])
        moved.copy_(kind(rows, generator).view(moved.shape))

    return change


def _places(rows):
    return torch.arange(rows.shape[1], device=rows.device)


def _one_of(counts, rows, generator):
    """One of the counts for each row, as far as it has so many elements."""
    found = torch.tensor([c for c in counts if 0 < c <= rows.shape[1]], device=rows.device)
    drawn = torch.randint(len(found), (len(rows), 1), generator=generator, device=rows.device)
    return found[drawn]


def _some(count, rows, generator):
    """In each row as many places as the count, one less or more, or twice as many: evenly apart,
    in one run, or anywhere."""
    counts = _one_of((count - 1, count, count + 1, count + 2, 2 * count), rows, generator)
    extent = rows.shape[1]
    evenly = torch.div(_places(rows) * counts, extent, rounding_mode="floor")
    is_first = evenly != evenly.roll(1, 1)
    is_first[:, :1] = True
    start = (torch.rand(counts.shape, generator=generator, device=rows.device) * (extent - counts + 1)).long()
    in_run = (_places(rows) >= start) & (_places(rows) < start + counts)
    order = torch.rand(rows.shape, generator=generator, device=rows.device).argsort(1).argsort(1)
    kind = torch.randint(3, counts.shape, generator=generator, device=rows.device)
    return torch.where(kind == 0, is_first, torch.where(kind == 1, in_run, order < counts))


def standing_out(count):
    """So many elements of a row are large, the others small."""

    def kind(rows, generator):
        large = rows.abs().amax(1, keepdim=True) + rows.abs()
        small = -rows.abs()
        return torch.where(_some(count, rows, generator), large, small)

    return _by_rows(count, kind)


def _cut(count):
    """What stands before the place of that number is nothing, or what stands behind it."""

    def kind(rows, generator):
        factor = pick((0.0, _LITTLE), generator)
        counts = _one_of((count, count + 1), rows, generator)
        is_behind = uniform(generator, 0, 1) < 0.5
        is_cut = (_places(rows) >= counts) if is_behind else (_places(rows) < counts)
        return torch.where(is_cut, rows * factor, rows)

    return _by_rows(count, kind)


def _run(count):
    """So many equal elements, or zeros, at one end of each row or the other."""

    def kind(rows, generator):
        counts = _one_of((count, count + 1, 2 * count), rows, generator)
        value = rows[:, :1] * pick((0.0, 1.0), generator)
        places = _places(rows)
        if uniform(generator, 0, 1) < 0.5:
            places = places.flip(0)
        return torch.where(places < counts, value, rows)

    return _by_rows(count, kind)


def opened(count):
    """So many are true of each row of a mask."""

    def change(tensor, generator):
        axes = [axis for axis, extent in enumerate(tensor.shape) if extent > count]
        if not axes or tensor.numel() > _MOST_IN_ROW:
            return
        moved = tensor.movedim(axes[-1], -1)
        rows = moved.reshape(-1, moved.shape[-1])
        moved.copy_(_some(count, rows, generator).view(moved.shape))

    return change


def whole(count):
    """Half of the elements are next to the number, or twice as large."""

    def change(tensor, generator):
        most = torch.iinfo(tensor.dtype).max
        values = [v for v in (count - 1, count, count + 1, 2 * count, 2 * count + 1) if v <= most]
        if not values:
            return
        found = torch.tensor(values, dtype=tensor.dtype, device=tensor.device)
        drawn = torch.randint(len(values), tensor.shape, generator=generator, device=tensor.device)
        stays = torch.rand(tensor.shape, generator=generator, device=tensor.device) < 0.5
        tensor.copy_(torch.where(stays, tensor, found[drawn]))

    return change
