# SPDX-License-Identifier: Apache-2.0
"""Other values for inputs that hold no ordinary numbers.

Integers, booleans, floats that hold whole numbers (labels, masks, one-hot rows) or
infinities, and tensors of one value are drawn anew inside their domain: what was seen in
some draws of `get_inputs`, and what the operators that take them prove legal. Each way to
draw has milder ones behind it, for a reference that refuses the first.
"""

import math

import torch

from .domain import draw_values, finite_range
from .end_ways import ends_of, special_of
from .mask_ways import equal_columns, equal_rows, move_some_ways, true_rows
from .pieces import CHUNK, pieces, some_of_each

# Of whole-numbered floats, one row in so many is all at one end of what was seen.
_ROWS_PER_END = 8
# Whole numbers around zero that are drawn where both signs are.
_NEAR = 9
# By how much a number grows that was always the same.
_MORE = 7


def redrawn_ways(tensor, domain):
    """Ways to draw a tensor anew inside its domain, the mildest last: functions of
    (tensor, generator) that change it in place. None where nothing can change."""
    if domain.is_constant:
        return []
    if domain.uses.is_ordered:
        return [_sorted(domain)]
    if domain.uses.is_written:
        return [_other_places(domain), _permute] if tensor.dim() == 1 else [_permute]
    if domain.values is None and not (math.isfinite(domain.low) and math.isfinite(domain.high)):
        return [_shuffle, _permute]
    ways = [_patterns(domain), _resample(domain), _shuffle]
    if tensor.dim() == 1 and tensor.dtype != torch.bool:
        return [*ways, _sorted(domain)]
    return [*ways, _permute, *move_some_ways()]


def extreme_ways(tensor, domain):
    """Ways to go to the ends of the domain, as those of `redrawn_ways`."""
    uses = domain.uses
    if tensor.dtype == torch.bool:
        return [equal_rows(0.75), equal_rows(0.1), true_rows]
    if tensor.is_floating_point():
        if uses.is_restricted:
            return [] if domain.is_constant else [ends_of(domain.low, domain.high, ())]
        return _ordinary_ways(domain)
    if uses.is_ordered:
        return [_sorted(domain, is_sparse=True)]
    if uses.is_written:
        return [_reverse]
    low, high = int(domain.low), int(domain.high)
    if uses.legal:
        low, high = min(low, uses.legal[0]), max(high, uses.legal[1])
        special = uses.special
    else:
        special = () if uses.is_restricted else special_of(tensor.dtype)
        # A number that may stop an operator is asked about above 0 alone.
        if domain.is_constant and (low > 0 or not uses.is_restricted):
            high = min(high + _MORE, torch.iinfo(tensor.dtype).max)
    compared = uses.turning(low, high)
    ways = [ends_of(low, high, special, compared)] if special or compared else []
    if tensor.element_size() == 1 and not (uses.legal or uses.is_restricted):
        ends = torch.iinfo(tensor.dtype)
        ways.insert(0, ends_of(ends.min, ends.max, special))
    if low < high:
        ways.append(ends_of(low, high, ()))
    if low < high and (low, high) != (domain.low, domain.high) and not domain.is_constant:
        ways.append(ends_of(int(domain.low), int(domain.high), ()))
    if tensor.dim() == 1 and not domain.is_constant:
        ways.append(_sorted(domain, is_sparse=True))
    return ways


def signed_ways(tensor, domain):
    """Ways to give whole numbers that only arithmetic takes both signs."""
    is_signed = not tensor.is_floating_point() and tensor.dtype not in (torch.bool, torch.uint8)
    uses = domain.uses
    is_free = not (uses.is_restricted or uses.is_ordered or uses.is_written or uses.special)
    return [_mirror] if is_signed and is_free else []


def equal_ways(tensor, domain):
    """Ways to make all elements one value: a count is then that of all, a mask wholly open or
    closed."""
    uses = domain.uses
    if tensor.dtype == torch.bool:
        whole = [_all(True), _all(False)]
        return [equal_columns, *whole] if tensor.dim() > 1 else whole
    is_free = not (uses.is_ordered or uses.is_written or domain.is_constant)
    if tensor.numel() < 2 or not is_free or tensor.is_floating_point():
        return []
    low, high = uses.legal or (int(domain.low), int(domain.high))
    if tensor.element_size() > 1:
        return [_one_between(int(low), int(high))]
    # Sums and products of numbers of a byte are the largest there: of -128 those of two leave 16 bits.
    ends = torch.iinfo(tensor.dtype)
    most = [] if uses.is_restricted else [_all(ends.min or ends.max)]
    return [*most, _all(high)]


def ignoring_ways(tensor, domain):
    """Ways to make every element the one that an operator leaves out."""
    if tensor.is_floating_point() or tensor.dtype == torch.bool or not domain.uses.ignored:
        return []
    return [_all(domain.uses.ignored[0])]


def _all(value):
    return lambda tensor, generator: tensor.fill_(value)


def _one_between(low, high):
    def change(tensor, generator):
        tensor.fill_(torch.randint(low, high + 1, (), generator=generator, device=generator.device))

    return change


def _resample(domain):
    def change(tensor, generator):
        for part in tensor.view(-1).split(CHUNK):
            if domain.values is not None and part.dtype == torch.bool:
                ones = torch.rand(part.shape, generator=generator, device=part.device) < 0.5
                part.copy_(ones)
            else:
                part.copy_(draw_values(part.shape, domain, generator, part.dtype))

    return change


def _patterns(domain):
    """Half of the rows are drawn anew; the others are one number, one but for a few elements, in
    runs of one length or another, or without a number with which the graph compares, wholly or
    up to a late place."""
    is_mask = domain.values is not None and domain.values.dtype == torch.bool
    compared = [] if is_mask else domain.uses.turning(domain.low, domain.high)

    def change(tensor, generator):
        device = generator.device
        chosen = torch.tensor(compared, dtype=tensor.dtype, device=device)
        for rows in pieces(tensor):
            count, extent = shape = rows.shape

            def drawn(*shape, dtype=rows.dtype):
                return draw_values(shape, domain, generator, dtype).to(dtype)

            def chance(most, *shape):
                return torch.randint(most, shape, generator=generator, device=device)

            least = torch.tensor(domain.low, device=device).to(rows.dtype)
            plain, one, other = drawn(*shape), drawn(count, 1), drawn(count, 1)
            if compared:
                one = torch.where(chance(2, count, 1) == 0, chosen[chance(len(chosen), count, 1)], one)
            few = torch.where(some_of_each(shape, generator), other, one)
            ends = chance(1 << 16, *shape) < (1 << 16) >> (1 + chance(6, count, 1))
            runs = plain.gather(1, ends.cumsum(1).clamp(max=extent - 1))
            without = plain
            # Where none is left in its place, it may be there once more.
            for _ in range(2 if compared else 0):
                without = torch.where(torch.isin(without, chosen), drawn(*shape), without)
            last = (extent >> (1 + chance(4, count, 1))).clamp(min=1)
            late = torch.arange(extent, device=device) >= extent - last
            kind = chance(8, count, 1)
            late = torch.where(late, plain, without)
            # Who looks at the first of a row takes the rest for what that is.
            begun = torch.where(torch.arange(extent, device=device) == 0, least, plain)
            for number, pattern in enumerate((one, few, runs, without, late, begun)):
                plain = torch.where(kind == number, pattern, plain)
            rows.copy_(plain)

    return change


def _other_places(domain):
    """As many distinct places of all that are legal."""

    def change(tensor, generator):
        count = domain.uses.legal[1] + 1
        places = torch.randperm(count, generator=generator, device=generator.device)
        if count >= tensor.numel():
            tensor.copy_(places[: tensor.numel()])

    return change


def _shuffle(tensor, generator):
    """Each row has its own elements in another order."""
    if tensor.dim() == 1:
        _permute(tensor, generator)
        return
    for rows in pieces(tensor):
        order = torch.rand(rows.shape, generator=generator, device=rows.device).argsort(dim=1)
        rows.copy_(rows.gather(1, order))


def _permute(tensor, generator):
    """Whole slices in another order, along each axis."""
    for axis, extent in enumerate(tensor.shape):
        if extent > 1:
            order = torch.randperm(extent, generator=generator, device=generator.device)
            tensor.copy_(tensor.index_select(axis, order))


def _mirror(tensor, generator):
    """Half of the elements have the other sign, but for some next to zero."""
    for part in tensor.view(-1).split(CHUNK):
        kind = torch.randint(4, part.shape, generator=generator, device=part.device)
        near = torch.randint(-_NEAR, _NEAR + 1, part.shape, generator=generator, device=part.device)
        part.copy_(torch.where(kind == 0, near.to(part.dtype), torch.where(kind == 1, part, -part)))


def _reverse(tensor, _):
    tensor.copy_(tensor.flip(tuple(range(tensor.dim()))))


def _sorted(domain, is_sparse=False):
    """In order, with the same first one, and the same last one unless the graph says how far it
    may go. Of groups one has half or more of all; where it `is_sparse`, many are equal."""

    def change(tensor, generator):
        if tensor.dim() != 1 or tensor.numel() < 3:
            return
        low, high = tensor[0].item(), tensor[-1].item()
        if tensor.is_floating_point() or low > high:
            tensor.copy_(tensor.sort().values)
            return
        top = high
        if domain.uses.is_ordered:
            top = domain.uses.legal[1] if domain.uses.legal else max(high, int(domain.high))
        shape, device = (tensor.numel() - 2,), tensor.device
        inner = torch.randint(low, top + 1, shape, generator=generator, device=device)
        if is_sparse:
            few = inner[torch.randint(len(inner), (3,), generator=generator, device=device)]
            few = torch.cat([few, few.new_tensor([low, top])])
            # One group has all, or there are up to four.
            first = 3 * int(torch.randint(2, (1,), generator=generator, device=device))
            inner = few[torch.randint(first, 5, shape, generator=generator, device=device)]
        elif domain.uses.is_ordered:
            most = (top - low) // 2
            place = torch.randint(low, top - most + 1, (1,), generator=generator, device=device)
            inner = torch.randint(low, top - most + 1, shape, generator=generator, device=device)
            inner = torch.where(inner > place, inner + most, inner)
        tensor[1:-1].copy_(inner.sort().values)
        tensor[-1] = max(high, tensor[-2].item()) if domain.uses.is_ordered else high

    return change


def _ordinary_ways(domain):
    """Whole and equal floats become ordinary ones, but for some rows that are all at one end
    of what was seen, as a mask has them, and others that are there in some places."""
    low, high = finite_range(domain)
    scale = max(abs(low), abs(high)) or 1.0

    def normal(tensor, generator):
        for part in tensor.view(-1).split(CHUNK):
            drawn = torch.randn(part.shape, generator=generator, device=part.device)
            part.copy_(drawn.mul_(scale))
        _put_places_at(tensor, generator, low)
        _put_rows_at_ends(tensor, generator, (low, high) if low < high else ())

    def uniform(tensor, generator):
        start, end = (low, high) if low < high else sorted((0.5 * low, 1.5 * low))
        if domain.uses.is_probability:
            start, end = 0.0, 1.0
        for part in tensor.view(-1).split(CHUNK):
            drawn = torch.rand(part.shape, generator=generator, device=part.device)
            part.copy_(drawn.mul_(end - start).add_(start))

    return [uniform] if domain.uses.is_probability else [normal, uniform]


def _put_places_at(tensor, generator, value):
    """A third of the elements of half of the rows."""
    for rows in pieces(tensor):
        is_some = torch.rand(len(rows), 1, generator=generator, device=rows.device) < 0.5
        places = torch.rand(rows.shape, generator=generator, device=rows.device) < 1 / 3
        rows.masked_fill_(is_some & places, value)


def _put_rows_at_ends(tensor, generator, ends):
    """Makes one row of `_ROWS_PER_END` equal to each of `ends`, at least one where there are
    a few rows."""
    for rows in pieces(tensor):
        count = max(len(rows) // _ROWS_PER_END, 1)
        places = torch.randperm(len(rows), generator=generator, device=rows.device)
        if len(rows) <= 2 * count:
            continue
        for number, end in enumerate(ends):
            rows[places[number * count : (number + 1) * count]] = end
