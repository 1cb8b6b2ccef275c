# SPDX-License-Identifier: Apache-2.0
"""Values of ordinary floats that a random draw never shows, as changes in place.

Each change is a function of (tensor, generator, number, bounds): which of the changed
tensors it is, and the numbers at which an operator of the graph changes its mind.
"""

import torch

from .pieces import pieces

# Rows of one kind, at most, and at least where there are enough rows.
_MOST_ROWS = 64
# One row of so many is changed in one way.
_ROWS_PER_KIND = 16
# Of a few rows, one in so many stays as it was drawn.
_ROWS_LEFT = 4
_SPIKE = 20.0
_DENORMAL = 1e-40
_WIDE = 25.0
# Powers of ten by which rows are shifted and scaled.
_FAR_DECADES, _TINY_DECADES = (2.5, 1.5), (-2.0, -8.0)
_LARGE_DECADES = (2.5, 5.0)
# Around and below what guards add to a norm or to its square.
_GUARD_DECADES = (-9.0, -20.0)
# Planes are changed along axes that have so many.
_LEAST_PLANES = 4
_DISTINCT_VALUES = 8
_CHUNK = 1 << 22
# How near the ends and bounds values lie, in parts of the range.
_NEAR = 1e-3
_MOST_PLACES = 4
# By how much of them elements of a tensor differ that is nearly another one.
_BESIDE = 1e-3
# A tensor up to this size has each kind of element as often as the others.
_SMALL = 1 << 12


def far_rows(tensor, generator, *_):
    """As `special_rows`; besides, some rows are far from zero on either side, or wide, or
    tiny, or smaller than a guard, or have a spike in front, and what comes first is zero:
    there shortcuts look."""
    _change_planes(tensor, generator, has_zeros=True, zeros_first=True)
    far = [_far_up, _far_down, _wide, _tiny, _below_guards, _spike_first]
    _change_rows(tensor, generator, [*_SPECIAL, *far])
    _clear_first(tensor)


def special_rows(tensor, generator, *_):
    """Some rows are zero, equal, tied at their ends, denormal, in order, up and down, with their
    largest elements a power of two apart, or have a spike. What comes first is zero, in all inputs alike."""
    _change_planes(tensor, generator, has_zeros=True)
    _change_rows(tensor, generator, _SPECIAL)
    _clear_first(tensor)


def _clear_first(tensor):
    if tensor.dim() > 1 and tensor.numel() > tensor.shape[-1]:
        tensor.view(-1, tensor.shape[-1])[0] = 0
    elif tensor.numel() > 1:
        tensor.view(-1)[0] = 0


def tied_rows_after_zeros(tensor, generator, *_):
    """As `tied_rows`; what comes first is zero, in all inputs alike: where one is zero alone, a
    power or a logarithm may not be defined."""
    tied_rows(tensor, generator)
    _clear_first(tensor)


def tied_rows(tensor, generator, *_):
    """Some rows are equal, tied or in order, within what was drawn."""
    _change_planes(tensor, generator, has_zeros=False)
    _change_rows(tensor, generator, [_equal, _tie, _sort, _reverse])


def ordered_rows(tensor, generator, *_):
    """Some rows are tied at their ends or in order."""
    _change_rows(tensor, generator, [_tie, _sort, _reverse])


def center(tensor, *_):
    """Without the mean, so that signs mix."""
    tensor.sub_(tensor.mean(dtype=torch.float64).to(tensor.dtype))


def round_off(tensor, *_):
    """About eight distinct values: multiples of one step, a power of two, so that those of
    two inputs are equal now and then. The first is zero where there may be zeros."""
    low, high = tensor.aminmax()
    step = torch.exp2(_step(tensor).log2().round())
    for part in tensor.view(-1).split(_CHUNK):
        part.copy_((part.to(step.dtype) / step).round_().mul_(step))
    if low <= 0 <= high:
        tensor.view(-1)[0] = 0


def at_landmarks(marks, is_one_sided):
    """A way to put half of the elements exactly at landmarks, on the side of zero where all
    were if it `is_one_sided`, and to round the others off."""

    def change(tensor, generator, *_):
        is_negative = tensor.min() < 0
        round_off(tensor)
        for part in tensor.view(-1).split(_CHUNK):
            kind = _kinds(part, 2 * len(marks), generator)
            for number, mark in enumerate(marks):
                mine = kind == number
                found = mark.met(part, generator)
                if is_one_sided and not is_negative:
                    mine &= found >= 0
                part.copy_(torch.where(mine, found, part))
        _meet_by_rows(tensor, generator, [mark for mark in marks if mark.is_of_rows])

    return change


def _meet_by_rows(tensor, generator, marks):
    """Puts all of some rows at a landmark, such as zero where a norm is taken."""
    if not marks or tensor.dim() < 2:
        return
    rows = tensor.view(-1, tensor.shape[-1])
    each = min(max(len(rows) // _ROWS_PER_KIND, 1), _MOST_ROWS)
    places = torch.randperm(len(rows), generator=generator, device=tensor.device)
    for number, mark in enumerate(marks[: len(rows) // 2]):
        mine = places[number * each : (number + 1) * each]
        rows[mine] = mark.met(rows[mine], generator)


def by_periods(waves):
    """A way to move most elements by whole periods of the waves that an operator makes."""

    def change(tensor, generator, *_):
        for part in tensor.view(-1).split(_CHUNK):
            kind = _kinds(part, len(waves), generator)
            for number, wave in enumerate(waves):
                part.copy_(torch.where(kind == number, wave.moved(part, generator), part))

    return change


def _kinds(part, count, generator):
    """For each element one of `count` numbers, as often as the others in a small tensor."""
    size = part.numel()
    if size > _SMALL:
        return torch.randint(count, (size,), generator=generator, device=part.device)
    return torch.randperm(size, generator=generator, device=part.device) % count


def round_inside(tensor, *_):
    """Eight distinct values inside the range."""
    step, low = _step(tensor), tensor.min()
    low = low.to(step.dtype)
    for part in tensor.view(-1).split(_CHUNK):
        number = ((part.to(step.dtype) - low) / step).floor_().clamp_(0, _DISTINCT_VALUES - 1)
        part.copy_(number.add_(0.5).mul_(step).add_(low))


def go_to_ends_and_bounds(tensor, generator, _, bounds):
    """Half of the elements at the ends of the range or near them, others at `bounds`."""
    _go_to_ends(tensor, generator, bounds, is_exact=True)


def go_to_ends(tensor, generator, *_):
    """Half of the elements at the ends of the range or near them."""
    _go_to_ends(tensor, generator, (), is_exact=True)


def go_near_ends(tensor, generator, *_):
    """Half of the elements near the ends of the range, inside."""
    _go_to_ends(tensor, generator, (), is_exact=False)


def make_nonfinite(tensor, generator, *_):
    """NaN and both infinities at a few places."""
    flat = tensor.view(-1)
    count = min(max(flat.numel() // 256, 1), _MOST_PLACES)
    for value in (float("nan"), float("inf"), float("-inf")):
        shape = (count,)
        places = torch.randint(flat.numel(), shape, generator=generator, device=flat.device)
        flat[places] = value


def natural_range(tensor):
    """The ends of what a tensor was drawn from, as far as it shows."""
    low, high = (end.item() for end in tensor.aminmax())
    return (0.0, 1.0) if 0 <= low < 0.1 and 0.9 < high <= 1 else (low, high)


def bring_beside(tensor, other, generator):
    """Half of the rows become nearly what those of another tensor of the same shape are, or all
    of these nearly the opposite, beside which small differences would not be seen: where they
    are small, a difference of sums is rounding."""
    sign = 1 - 2 * torch.randint(2, (), generator=generator, device=generator.device)
    for rows, others in zip(pieces(tensor), pieces(other)):
        is_near = torch.rand(len(rows), 1, generator=generator, device=rows.device) < 0.5
        near = _nearly(others, generator) * sign.to(rows.device)
        rows.copy_(torch.where(is_near, near, rows))


def bring_all_beside(tensor, other, generator):
    """All of a tensor becomes nearly what another is."""
    for part, others in zip(tensor.view(-1).split(_CHUNK), other.view(-1).split(_CHUNK)):
        part.copy_(_nearly(others, generator))


def _nearly(values, generator):
    off = torch.randn(values.shape, generator=generator, device=values.device)
    return values * (1 + _BESIDE * off).to(values.dtype)


def _step(tensor):
    low, high = tensor.aminmax()
    wide = torch.promote_types(tensor.dtype, torch.float32)
    step = (high.to(wide) - low.to(wide)) / _DISTINCT_VALUES
    return step.clamp_(min=torch.finfo(torch.float32).tiny)


def _change_rows(tensor, generator, kinds):
    """Changes up to one row of `_ROWS_PER_KIND` in each of the ways `kinds`; one row each
    where there are fewer, and some of the ways where there are fewer rows than those."""
    if tensor.numel() < 2:
        return
    extent = tensor.shape[-1] if tensor.dim() > 1 else max(tensor.numel() // 2 // len(kinds), 1)
    rows = tensor.view(-1)[: tensor.numel() // extent * extent].view(-1, extent)
    each = min(max(len(rows) // _ROWS_PER_KIND, 1), _MOST_ROWS)
    device = tensor.device
    # Most rows stay, where there are enough.
    most = max(len(rows) // 2, min(len(kinds), len(rows) - len(rows) // _ROWS_LEFT), 1)
    places = torch.randperm(len(rows), generator=generator, device=device)
    places = places[: min(each * len(kinds), most)]
    order = torch.randperm(len(kinds), generator=generator, device=device).tolist()
    for number, kind in enumerate(order):
        mine = places[number :: len(kinds)]
        if len(mine):
            rows[mine] = kinds[kind](rows[mine], generator)


def _change_planes(tensor, generator, has_zeros, zeros_first=False):
    """One whole slice is zero, another equal, along the first and the second axis."""
    if tensor.dim() < 2:
        return
    for axis in (0, 1):
        extent = tensor.shape[axis]
        if extent < _LEAST_PLANES or (axis == 0 and tensor.dim() < 3):
            continue
        places = torch.randperm(extent, generator=generator, device=generator.device)
        first, second = places[:2]
        if zeros_first:
            first, second = places[places != 0][0], 0
        equal = tensor.select(axis, int(first))
        equal.copy_(_equal(equal.reshape(1, -1), None).reshape(equal.shape))
        if has_zeros and extent >= 2 * _LEAST_PLANES:
            tensor.select(axis, int(second)).zero_()


def enlarge_first_rows(tensor, generator):
    """The first row of every other slice, which may see no other one, each by another power
    of ten."""
    if tensor.dim() < 3 or tensor.shape[-2] < _LEAST_PLANES:
        return
    first = tensor.view(-1, *tensor.shape[-2:])[1::2, 0]
    if len(first):
        first.copy_(_scaled(first, generator, *_LARGE_DECADES))


def _zero(rows, _):
    return torch.zeros_like(rows)


def _equal(rows, _):
    """One value of few bits: whoever sums it in FP32 has no rounding to repeat in one
    direction, which a division by a variance of zero would magnify."""
    low, high = rows.aminmax(dim=1, keepdim=True)
    mantissa, exponent = torch.frexp(high.float())
    short = torch.ldexp((mantissa * 8).trunc() / 8, exponent).to(rows.dtype)
    return torch.where(short >= low, short, high).expand(rows.shape)


def _tie(rows, generator):
    """Several equal maxima and minima, and some that are 1e-2 to 1e-6 below the maximum, of doubles
    to 1e-12: of rounded ones they are equal, too."""
    low, high = rows.aminmax(dim=1, keepdim=True)
    kind = torch.rand(rows.shape, generator=generator, device=rows.device)
    decades = 10 if rows.dtype == torch.float64 else 4
    power = torch.rand(rows.shape, generator=generator, device=rows.device).mul_(decades).add_(2)
    nearly = high - high.abs() * torch.pow(10.0, -power).to(rows.dtype)
    tied = torch.where(kind < 0.2, high, torch.where(kind > 0.8, low, rows))
    return torch.where((kind >= 0.2) & (kind < 0.3), nearly, tied)


def _island(rows, generator):
    """Zero but for one stretch at a random place, of one element in every other row."""
    extent, device = rows.shape[1], rows.device
    # Not at the beginning, where short cuts look.
    start = torch.randint(extent // 4, extent, (len(rows), 1), generator=generator, device=device)
    length = torch.randint(1, extent + 1, start.shape, generator=generator, device=device)
    length[::2] = 1
    place = torch.arange(extent, device=device)
    return torch.where((place >= start) & (place < start + length), rows, 0)


def _denormal(rows, _):
    return rows * _DENORMAL


def _spike(rows, generator):
    shape = (len(rows), 1)
    place = torch.randint(rows.shape[1], shape, generator=generator, device=rows.device)
    return rows.scatter(1, place, rows.gather(1, place) * _SPIKE)


def _spike_first(rows, _):
    spiked = rows.clone()
    spiked[:, 0] *= _SPIKE
    return spiked


def _far_up(rows, _):
    return rows + _shift(rows)


def _far_down(rows, _):
    return rows - _shift(rows)


def _shift(rows):
    """From 300 to 30 times the largest element, each row by another one: far enough for exp to
    leave its range where no maximum is taken off."""
    size = rows.abs().amax(dim=1, keepdim=True)
    return size * _powers(torch.linspace(*_FAR_DECADES, len(rows), device=rows.device), rows)


def _wide(rows, _):
    return rows * _WIDE


def _tiny(rows, generator):
    """Each row by another power of ten, drawn from its part of the way."""
    return _scaled(rows, generator, *_TINY_DECADES)


def _below_guards(rows, generator):
    return _scaled(rows, generator, *_GUARD_DECADES)


def _scaled(rows, generator, first, last):
    parts = torch.arange(len(rows), device=rows.device)
    parts = parts + torch.rand(len(rows), generator=generator, device=rows.device)
    return rows * _powers(first + (last - first) * parts / len(rows), rows)


def _powers(exponents, rows):
    """A power of ten for each row."""
    return torch.pow(10.0, exponents).to(rows.dtype).unsqueeze(1)


def _sort(rows, _):
    return rows.sort(dim=1).values


def _reverse(rows, _):
    return rows.flip(1)


def zigzag(rows, _):
    """Small and large elements in turn: every other place is a peak."""
    found = rows.clone()
    ordered = rows.sort(dim=1).values
    half = (rows.shape[1] + 1) // 2
    found[:, ::2], found[:, 1::2] = ordered[:, :half], ordered[:, half:]
    return found


def _comb(rows, generator):
    """The largest elements of each row lie a power of two apart, where one lane of many finds them
    all."""
    extent = rows.shape[1]
    powers = max((extent // 4).bit_length() - 1, 1)
    options = {"generator": generator, "device": rows.device}
    gap = 2 ** torch.randint(1, powers + 1, (len(rows), 1), **options)
    lane = torch.randint(extent, (len(rows), 1), **options) % gap
    places = torch.arange(extent, device=rows.device).expand(len(rows), -1)
    in_turn = ((places - lane) % gap * extent + places).argsort(dim=1)
    return torch.empty_like(rows).scatter_(1, in_turn, rows.sort(dim=1, descending=True).values)


# Ways that the reference may bear only where all inputs are changed so.
JOINT = (tied_rows_after_zeros,)
_SPECIAL = [_zero, _equal, _tie, _denormal, _spike, _sort, _reverse, zigzag, _comb, _island]


def _bound_of_rows(tensor, part, first_element, count):
    """For each element of a part the number of the bound that its row meets, so that the largest
    of a row is near a bound, too; None where there are too few rows, which meet them all."""
    if count < 2 or tensor.dim() < 2 or tensor.numel() // tensor.shape[-1] < 2 * count:
        return None
    place = torch.arange(first_element, first_element + part.numel(), device=part.device)
    return place // tensor.shape[-1] % count


def _go_to_ends(tensor, generator, bounds, is_exact):
    low, high = natural_range(tensor)
    span = high - low
    step = torch.finfo(tensor.dtype).eps * max(abs(high), abs(low))
    inner = max(_NEAR * span, step)
    start, end = (low, high) if is_exact else (low + step, high - step)
    first_element = 0
    for part in tensor.view(-1).split(_CHUNK):
        mine = _bound_of_rows(tensor, part, first_element, len(bounds))
        first_element += part.numel()
        kind = torch.rand(part.shape, generator=generator, device=part.device)
        near = torch.rand(part.shape, generator=generator, device=part.device).pow_(4).mul_(inner)
        found = torch.where(kind < 0.25, start + near, part.to(near.dtype))
        found = torch.where(kind > 0.75, end - near, found)
        for number, bound in enumerate(bounds):
            # Both sides of a bound, and the bound itself.
            side = near.sub(inner / 2).mul_(2 * max(abs(bound), 1.0))
            first = 0.3 + 0.4 * number / len(bounds)
            has_bound = (kind > first) & (kind < first + 0.2 / len(bounds))
            if mine is not None:
                has_bound = (mine == number) & (kind > 0.3) & (kind < 0.5)
            found = torch.where(has_bound, bound + side, found)
            is_bound = has_bound & (near < inner / 64)
            found = torch.where(is_bound, torch.full_like(near, bound), found)
        part.copy_(found.clamp_(start, end) if not bounds else found)
        if is_exact:
            part.masked_fill_(kind < 0.05, low).masked_fill_(kind > 0.95, high)
        else:
            part.clamp_(start, end)
