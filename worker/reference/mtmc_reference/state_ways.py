# SPDX-License-Identifier: Apache-2.0
"""Ways to change a parameter or buffer in place, to other numbers of the same type, shape,
scale, sign and structure, and to those that training, pruning or a checkpoint may bring."""

import dataclasses
import functools
import math

import torch

from . import distribution
from .mask_ways import move_some_ways
from .pieces import changed

_CHUNK = 1 << 22
# Factor of an element, and of a tensor whose elements keep their places.
_LEAST_FACTOR, _MOST_FACTOR = 0.7, 1.3
_SAMPLE = 4096
# How far out elements are, in the larger of 1 and the largest of the tensor: enough for
# exponentials to overflow, and for most clamps.
_REACHES = (150.0, 12.0)
# Powers of ten to which a positive buffer goes down and up, such as a variance: below what
# guards add to it, and beyond what bounds it.
_POSITIVE_DECADES = (-7.0, 6.0)
# Rows from which on a matrix has pruned ones, elements from which on a vector has, since its ends
# are, too; one of how many is zero, and factors of minute ones.
_LEAST_ROWS, _LEAST_ELEMENTS, _ROWS_PER_ZERO, _MINUTE_POWERS = 4, 12, 16, (1e-7, 1e-5, 1e-3)
# Rows and columns of which one has a pattern of zeros; powers of ten of a single number.
_ROWS_PER_COMB, _SMALL_POWERS = 8, (-2.0, -0.3)
# Those of what may not be zero: a single number, a vector, and the rows of others.
_MINUTE_NUMBER, _MINUTE_VECTOR, _MINUTE_ROWS = (-2.4, -2.2), (-5.0, -4.0), (-8.0, -4.0)
# Part of the largest row that one has which is not minute.
_LEAST_SIZE = 1e-2
# By how much a counter goes on at most.
_FAR_COUNT = 30000
# Powers of ten, in parts of the distance to 0 or 1, of what is next to it.
_NEAR_POWERS = (-3.0, -0.5)
# Elements of a tensor of which a quarter are far out, and one of how many of a larger one.
_FEW, _FAR_APART = 256, 64


@dataclasses.dataclass(frozen=True)
class Ways:
    """Functions of (tensor, generator): those of either state, before those that are near what
    a tensor was, the mildest last."""

    near: list
    first: list = ()
    second: list = ()

    def _bold(self, number):
        return (self.first, self.second, ())[number]

    def in_state(self, number):
        """All of the first state (0), the second (1) or the third (2)."""
        return [*self._bold(number), *self.near]

    def is_bold(self, number, level):
        """Whether that way of a state leads to other than near values."""
        return level < len(self._bold(number))


def exchange(tensor, uses, seed):
    """Other elements of the same kind, in place; false where there are none."""
    ways = _near_ways(tensor, uses)
    if ways:
        generator = torch.Generator(tensor.device).manual_seed(seed)
        changed(ways[0], tensor, generator)
    return bool(ways)


def of(tensor, uses, place):
    """The Ways of a tensor, of which the graph says what it `uses`. `place`, from 0 to 1, is
    where the pruned rows of all tensors of a model are."""
    near = _near_ways(tensor, uses)
    is_free = not (uses.is_probability or uses.is_ordered or uses.is_restricted or uses.is_written)
    if not is_free or not near or tensor.dtype == torch.bool:
        return Ways(near)
    if not tensor.is_floating_point():
        # A single one is a counter.
        return Ways(near, second=[_anywhere] if tensor.numel() > 1 else [_count_far])
    if _is_whole(tensor) and not distribution.is_constant(tensor):
        # A mask stays a mask.
        return Ways(near)
    second = [_reaching(near[0], reach) for reach in _REACHES]
    if not isinstance(tensor, torch.nn.Parameter):
        return Ways(near, [], [_over_decades(near[0]), *second] if (tensor > 0).all() else second)
    if tensor.numel() == 1:
        return Ways(near, [_small(near[0])], second)
    least = _LEAST_ELEMENTS if tensor.dim() == 1 else _LEAST_ROWS
    is_long = tensor.dim() > 0 and tensor.shape[0] >= least
    pruned = [_pruned(near[0], place), _minute_rows(near[0], place)] if is_long else []
    return Ways(near, pruned, second)


def _near_ways(tensor, uses):
    """Ways to change a tensor in place, the mildest last: functions of (it, generator). None
    where it has no elements."""
    if not tensor.numel():
        return []
    if tensor.is_floating_point() and uses.is_probability:
        return [_resample, _permute_last]
    if tensor.is_floating_point() and uses.is_ordered:
        return [_scale]
    if tensor.is_floating_point():
        low, high = tensor.detach().aminmax()
        if bool(low == high) and bool(low.isfinite()):
            return [*_signed(tensor, _spread), _spread, _scale]
        if _is_whole(tensor):
            return [_resample, _permute_last, *move_some_ways()]
        usual = [*_signed(tensor, _resample_scaled), _resample_scaled, _scale_each]
        # A probability, or what is the cosine of something, stays between its ends.
        inside = [_near_one] if max(-low.item(), high.item()) <= 1 else []
        shrink_each = functools.partial(_scale_each, most=1.0)
        return [*usual, *inside, _resample, shrink_each, _scale]
    if tensor.dtype == torch.bool:
        is_mixed = bool(tensor.any() and not tensor.all())
        return [_resample, _permute_last, *move_some_ways()] if is_mixed else [_flip_some]
    if uses.is_ordered:
        return []
    if tensor.numel() > 1 and uses.is_written:
        return [_permute_last]
    if uses.legal and uses.legal[0] < uses.legal[1]:
        return [_between(*uses.legal), *([_resample, _permute_last] if tensor.numel() > 1 else [])]
    if uses.is_restricted or not distribution.is_constant(tensor):
        return [_resample, _permute_last] if tensor.numel() > 1 else []
    return [_count_on] if tensor.numel() == 1 else [_small_numbers, _count_on]


def _is_whole(tensor):
    sample = tensor.detach().reshape(-1)[:_SAMPLE]
    if bool((sample == sample.round()).all()):
        return bool((tensor == tensor.round()).all())
    return not bool(torch.isfinite(tensor).all())


def _uniform(shape, generator, low, high):
    drawn = torch.rand(shape, generator=generator, device=generator.device)
    return drawn.mul_(high - low).add_(low)


def _spread(tensor, generator):
    """Around the one value that all elements have; around 0 within a half."""
    for part in _parts(tensor):
        offset = _uniform(part.shape, generator, -0.5, 0.5)
        part.add_(torch.where(part == 0, offset, offset * part).to(part.dtype))


def _resample(tensor, generator):
    """Its own elements, with repeats, at other places."""
    source = tensor.detach().clone().reshape(-1)
    for part in _parts(tensor):
        places = torch.randint(
            source.numel(), part.shape, generator=generator, device=generator.device
        )
        part.copy_(source[places])


def _resample_scaled(tensor, generator):
    _resample(tensor, generator)
    _scale_each(tensor, generator)


def _signed(tensor, way):
    """The way, after which a quarter of the elements change sign; none for a buffer, such as a
    variance, whose sign is no accident."""

    def change(it, generator):
        way(it, generator)
        _flip_signs(it, generator)

    return [change] if isinstance(tensor, torch.nn.Parameter) else []


def _flip_signs(tensor, generator):
    for part in _parts(tensor):
        kind = _uniform(part.shape, generator, 0.0, 1.0)
        # One in any case: a slope may be the only element.
        kind.view(-1)[0] = 0.0
        part.mul_(torch.where(kind < 0.25, -1.0, 1.0).to(part.dtype))


def _scale_each(tensor, generator, most=_MOST_FACTOR):
    for part in _parts(tensor):
        part.mul_(_uniform(part.shape, generator, _LEAST_FACTOR, most).to(part.dtype))


def _near_one(tensor, generator):
    """Its own elements at other places, a third of them next to 0 and a third next to 1 in size."""
    _resample(tensor, generator)
    for part in _parts(tensor):
        powers = torch.pow(10.0, _uniform(part.shape, generator, *_NEAR_POWERS)).to(part.dtype)
        kind = _uniform(part.shape, generator, 0.0, 3.0)
        near_one = (1 - (1 - part.abs()) * powers).copysign(part)
        part.copy_(torch.where(kind < 1, part * powers, torch.where(kind < 2, near_one, part)))


def _scale(tensor, generator):
    factor = _uniform((1,), generator, 1.05, _MOST_FACTOR).item()
    tensor.mul_(factor)


def _permute_last(tensor, generator):
    """Whole slices in another order: rows keep what they have."""
    if tensor.dim() == 0:
        return
    order = torch.randperm(tensor.shape[-1], generator=generator, device=generator.device)
    tensor.copy_(tensor.detach()[..., order])


def _flip_some(tensor, generator):
    for part in _parts(tensor):
        part.logical_xor_(_uniform(part.shape, generator, 0.0, 1.0) < 0.3)


def _count_on(tensor, generator):
    """A counter that goes on, by a number of which each order of magnitude is as likely."""
    power = _uniform((), generator, 0.0, math.log10(min(_FAR_COUNT, torch.iinfo(tensor.dtype).max // 2)))
    tensor.add_(torch.pow(10.0, power).long().to(tensor.dtype))


def _count_far(tensor, generator):
    """A counter that has run for very long: beyond 32 bits where its type is."""
    most = torch.iinfo(tensor.dtype).max
    span = min(most // 2, 1 << 33)
    tensor.fill_(span + torch.randint(1, 100, (), generator=generator, device=generator.device))


def _small_numbers(tensor, generator):
    """Each element another number of a byte."""
    ends = torch.iinfo(tensor.dtype)
    _between(max(ends.min, -128), min(ends.max, 127))(tensor, generator)


def _anywhere(tensor, generator):
    """Any number of the type, or of 32 bits where it has more."""
    ends = torch.iinfo(tensor.dtype)
    _between(max(ends.min, -(1 << 31)), min(ends.max, (1 << 31) - 1))(tensor, generator)


def _between(low, high):
    def change(tensor, generator):
        for part in _parts(tensor):
            shape, device = part.shape, generator.device
            part.copy_(torch.randint(low, high + 1, shape, generator=generator, device=device))

    return change


def _reaching(way, reach):
    """The way, after which some elements are up to `reach` times as large as the largest, or
    as 1, by any power of ten between: a slope, a gate, a threshold as training leaves it."""

    def change(tensor, generator):
        largest = max(tensor.detach().abs().max().item(), 1.0)
        first = tensor.detach().reshape(-1)[0].item()
        way(tensor, generator)
        for part, is_far, power in _far_parts(tensor, generator, (1.0,)):
            size = torch.pow(reach, power).mul_(largest).to(part.dtype)
            part.copy_(torch.where(is_far, torch.where(part < 0, -size, size), part))
        # The first state has given a single number its other sign.
        with torch.no_grad():
            flat = tensor.view(-1)[:1] if tensor.is_contiguous() else tensor[:0]
            flat.copy_(flat.abs() if first >= 0 else -flat.abs())

    return change


def _small(way):
    """The way, after which a single number is 2 to 100 times smaller: a temperature, a gate."""

    def change(tensor, generator):
        way(tensor, generator)
        power = _uniform((1,), generator, *_SMALL_POWERS)
        tensor.mul_(torch.pow(10.0, power).item())

    return change


def minute(way):
    """The way, after which a tensor is as small as one may be that is not zero: a number by which
    something is divided, each row of a matrix that has a norm."""

    @torch.no_grad()
    def change(tensor, generator):
        way(tensor, generator)
        if tensor.numel() == 1 or tensor.dim() < 2:
            ends = _MINUTE_NUMBER if tensor.numel() == 1 else _MINUTE_VECTOR
            powers = _uniform((1,) * tensor.dim(), generator, *ends)
        else:
            count = tensor.shape[0]
            order = torch.randperm(count, generator=generator, device=generator.device)
            powers = torch.linspace(*_MINUTE_ROWS, count, device=generator.device)[order]
            powers = powers.view(count, *[1] * (tensor.dim() - 1))
        tensor.mul_(torch.pow(10.0, powers).to(tensor.dtype))

    return change


def _pruned(way, place):
    """The way, after which one stretch of rows is zero and the rows behind it minute, as
    structured pruning leaves them in all tensors of a layer. Of its own each tensor has
    other rows that are zero, and rows and columns that are in part: where one tensor of a layer
    has zeros, others have none."""

    @torch.no_grad()
    def change(tensor, generator):
        way(tensor, generator)
        count = tensor.shape[0]
        zeros = max(count // _ROWS_PER_ZERO, 1)
        start, end = _minute(tensor, place, zeros)
        tensor[start : start + zeros] = 0
        columns = tensor[0].numel()
        tensor[_own_rows(count, (start, end), columns == 1, generator)[:zeros]] = 0
        if columns == 1:
            # Both ends, where one looks whether there is anything.
            tensor[0] = tensor[-1] = 0
            return
        if not tensor.is_contiguous():
            return
        matrix = tensor.view(count, columns)
        most = max(min(count // 4, _CHUNK // columns), 1)
        rows = torch.randint(count, (most,), generator=generator, device=generator.device)
        rows[0] = 0
        _clear_stretches(matrix, torch.unique(rows), generator)
        _clear_combs(tensor, generator)

    return change


def _own_rows(count, common, is_vector, generator):
    """Rows in any order, but for those at both ends and `common` ones; a vector's are not those of
    a matrix, as far as there are others."""
    rows = torch.randperm(count, generator=generator, device=generator.device)
    is_free = (rows > 0) & (rows < count - 1) & ((rows < common[0]) | (rows >= common[1]))
    is_own = is_free & (rows % 2 == int(is_vector))
    return rows[is_own if is_own.any() else is_free]


def _minute_rows(way, place):
    """The way, after which up to three rows are minute, and none is zero."""

    @torch.no_grad()
    def change(tensor, generator):
        way(tensor, generator)
        _minute(tensor, place, 0)

    return change


def _minute(tensor, place, zeros):
    """Scales some rows; returns where the rows before them begin that are to be zero, and the end
    of them all."""
    count = tensor.shape[0]
    powers = _MINUTE_POWERS[: max(min(count // 8, len(_MINUTE_POWERS)), 1)]
    # The first row is none of them.
    start = 1 + int(place * (count - zeros - len(powers)))
    for row, power in enumerate(powers, start=start + zeros):
        tensor[row] *= power
    return start, start + zeros + len(powers)


def _clear_combs(tensor, generator):
    """Zeros are every other element of some rows, the first half of some columns, and in other
    rows all of one place of the last axis, such as the middle of a filter. Rows that are zero or
    minute already would not show it."""
    count, columns = tensor.shape[0], tensor[0].numel()
    matrix = tensor.view(count, columns)
    rows = torch.randperm(count, generator=generator, device=generator.device)
    size = matrix.abs().amax(dim=1)
    rows = rows[size[rows] > _LEAST_SIZE * size.max()]
    share = max(count // _ROWS_PER_COMB, 1)
    middle = tensor.shape[-1] // 2
    tensor[rows[:share], ..., middle] = 0
    matrix[rows[share : 2 * share], 1::2] = 0
    matrix[rows[2 * share : 3 * share], ::2] = 0
    places = torch.randperm(columns, generator=generator, device=generator.device)
    few = places[: max(columns // _ROWS_PER_COMB, 1)]
    matrix[: count // 2, few] = 0


def _clear_stretches(matrix, rows, generator):
    """A stretch of each row that is at most half as long becomes zero; of every other one at
    the start."""
    columns = matrix.shape[1]
    lengths = _uniform(rows.shape, generator, 0.0, 0.5).mul_(columns).clamp_(min=1)
    starts = _uniform(rows.shape, generator, 0.0, 1.0).mul_(columns - lengths)
    starts[::2] = 0
    column = torch.arange(columns, device=generator.device)
    is_cleared = (column >= starts[:, None]) & (column < (starts + lengths)[:, None])
    matrix[rows] = matrix[rows].masked_fill_(is_cleared, 0)


def _over_decades(way):
    """The way, after which some elements are of any power of ten of `_POSITIVE_DECADES`."""

    def change(tensor, generator):
        way(tensor, generator)
        low, high = _POSITIVE_DECADES
        high = min(high, math.log10(torch.finfo(tensor.dtype).max) - 1)
        # One near either end.
        for part, is_far, power in _far_parts(tensor, generator, (1 / (high - low), 1.0)):
            size = torch.pow(10.0, power.mul_(high - low).add_(low)).to(part.dtype)
            part.copy_(torch.where(is_far, size, part))

    return change


def _far_parts(tensor, generator, ends):
    """(part, which of its elements go far out, how far from 0 to 1 each goes) of all parts. The
    first ones do in any case, of several as far as `ends` say."""
    ratio = 0.25 if tensor.numel() <= _FEW else 1 / _FAR_APART
    for part in _parts(tensor):
        kind = _uniform(part.shape, generator, 0.0, 1.0)
        power = _uniform(part.shape, generator, 0.0, 1.0)
        kind.view(-1)[: len(ends)] = 0.0
        if part.numel() > 1:
            power.view(-1)[: len(ends)] = torch.tensor(ends, device=power.device)
        yield part, kind < ratio, power


def fill(tensor, value, uses):
    """All elements `value`, 0 or 1, or the nearest that an index may be. A counter is the other
    one: it is 0 where what it has counted is not."""
    is_whole = not tensor.is_floating_point() and tensor.dtype != torch.bool
    if is_whole and uses.is_restricted and tensor.numel():
        low, high = (end.item() for end in tensor.aminmax())
        value = min(max(value, low), high)
    elif is_whole and tensor.numel() == 1:
        value = 1 - value
    tensor.fill_(value)


def _parts(tensor):
    """The tensor's elements in chunks, as views of it; one chunk where it has gaps."""
    if tensor.is_contiguous():
        return tensor.detach().view(-1).split(_CHUNK)
    return [tensor.detach()]
