# SPDX-License-Identifier: Apache-2.0
"""Other values for inputs that hold no ordinary numbers.

Integers, booleans, floats that hold whole numbers (labels, masks, one-hot rows) or
infinities, and tensors of one value are drawn anew inside their domain: what was seen in
some draws of `get_inputs`, and what the operators that take them prove legal. Each way to
draw has milder ones behind it, for a reference that refuses the first.
"""

import dataclasses
import math

import torch

from .graph_domain import Uses

# Most distinct values that are drawn from as a set; where there are more, the range counts.
_MOST_VALUES = 64
_SAMPLE = 1 << 16
# Elements of a small tensor, and how often it is drawn until it is another one.
_SMALL, _TRIES = 64, 8
# Elements that are drawn at once.
_CHUNK = 1 << 22
# Vectors are changed in so many stretches.
_STRETCHES = 8
# Of whole-numbered floats, one row in so many is all at one end of what was seen.
_ROWS_PER_END = 8
# Parts of a row that are special values, where a row has few or many.
_FEW_SPECIAL, _MOST_SPECIAL = 0.1, 0.6
# Whole numbers around zero that are drawn where both signs are.
_NEAR = 9
# Whole numbers beyond 32 bits: one whose lower half is 0, two that no float tells apart, and
# two that no double has.
_WIDE = (1 << 33, -(1 << 33) + 3, (1 << 40) + 5, (1 << 40) + 6, (1 << 57) + 3, -(1 << 60) - 5)
# Where whole numbers begin that no double has, and how many above one of those are drawn.
_NO_DOUBLE, _NO_DOUBLE_SPAN = 1 << 53, 1 << 20
# Rows of a mask of which one may be all false and one all true.
_LEAST_ROWS = 4
# By how much a number grows that was always the same.
_MORE = 7
# Members of small groups, in turn: what divides by a size less one, or three, is not defined; of
# one alone whoever looks at a part of a row sees nothing.
_MEMBERS = (1, 2, 1, 3, 1, 5, 1, 4, 1, 7, 1, 6)


@dataclasses.dataclass
class Domain:
    """Values of one input that were seen, and what the graph says about it."""

    low: float
    high: float
    # Values on the host, where they are few; None where the range counts.
    values: torch.Tensor
    uses: Uses

    @property
    def is_constant(self):
        return self.low == self.high


def domain_of(draws, uses):
    """Domain of an input whose values in several draws of `get_inputs` are given."""
    lows, highs, samples = [], [], []
    for tensor in draws:
        flat = tensor.reshape(-1)
        # Not all types have extremes on all devices.
        sample = flat[:: max(flat.numel() // _SAMPLE, 1)]
        wide = tensor.to(torch.uint8) if tensor.dtype == torch.bool else tensor
        low, high = wide.aminmax()
        lows.append(low.item())
        highs.append(high.item())
        samples.append(torch.unique(sample).cpu())
    values = torch.unique(torch.cat(samples))
    is_set = values.numel() <= _MOST_VALUES
    return Domain(min(lows), max(highs), values if is_set else None, uses)


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
        return [_equal_rows(domain, 0.75), _equal_rows(domain, 0.1), _true_rows]
    if tensor.is_floating_point():
        if uses.is_restricted:
            return [] if domain.is_constant else [_ends(domain.low, domain.high, ())]
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
        special = () if uses.is_restricted else _special_of(tensor.dtype)
        # A number that may stop an operator is asked about above 0 alone.
        if domain.is_constant and (low > 0 or not uses.is_restricted):
            high = min(high + _MORE, torch.iinfo(tensor.dtype).max)
    ways = [_ends(low, high, special)] if special else []
    if tensor.element_size() == 1 and not (uses.legal or uses.is_restricted):
        ends = torch.iinfo(tensor.dtype)
        ways.insert(0, _ends(ends.min, ends.max, special))
    if low < high:
        ways.append(_ends(low, high, ()))
    if low < high and (low, high) != (domain.low, domain.high) and not domain.is_constant:
        ways.append(_ends(int(domain.low), int(domain.high), ()))
    if tensor.dim() == 1 and not domain.is_constant:
        ways.append(_sorted(domain, is_sparse=True))
    return ways


def _special_of(dtype):
    """Whole numbers that only arithmetic takes, and that narrower types do not hold."""
    if dtype == torch.int64:
        return _WIDE
    ends = torch.iinfo(dtype)
    return (ends.max, ends.min) if ends.min else (ends.max, ends.max // 2 + 1)


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
        return [_equal_columns, *whole] if tensor.dim() > 1 else whole
    is_free = not (uses.is_ordered or uses.is_written or domain.is_constant)
    if tensor.numel() < 2 or not is_free or tensor.is_floating_point():
        return []
    low, high = uses.legal or (int(domain.low), int(domain.high))
    if tensor.element_size() > 1:
        return [_one_between(int(low), int(high))]
    # Sums and products of numbers of a byte are the largest there.
    most = [] if uses.is_restricted else [_all(torch.iinfo(tensor.dtype).max)]
    return [*most, _all(high)]


def ignoring_ways(tensor, domain):
    """Ways to make every element the one that an operator leaves out."""
    if tensor.is_floating_point() or tensor.dtype == torch.bool or not domain.uses.ignored:
        return []
    return [_all(domain.uses.ignored[0])]


def _equal_columns(mask, generator):
    """Each place of the last axis has one value in all rows, one of them true in any case."""
    extent = mask.shape[-1]
    is_true = torch.rand(extent, generator=generator, device=mask.device) < 0.5
    is_true[torch.randint(extent, (1,), generator=generator, device=mask.device)] = True
    mask.copy_(is_true.expand(mask.shape))


def _all(value):
    return lambda tensor, generator: tensor.fill_(value)


def _one_between(low, high):
    def change(tensor, generator):
        tensor.fill_(torch.randint(low, high + 1, (), generator=generator, device=generator.device))

    return change


def changed(way, tensor, generator):
    """Changes a tensor in place in a way; a small one, of which chance may leave all as it
    is, is tried again."""
    if tensor.numel() > _SMALL:
        way(tensor, generator)
        return
    before = tensor.detach().clone()
    for _ in range(_TRIES):
        way(tensor, generator)
        if not torch.equal(tensor, before):
            return


def pieces(tensor):
    """The tensor's rows along its last axis, or stretches of a vector, as views of it in
    chunks of bounded size."""
    flat = tensor.view(-1)
    extent = tensor.shape[-1] if tensor.dim() > 1 else max(tensor.numel() // _STRETCHES, 1)
    count = flat.numel() // extent
    rows = flat[: count * extent].view(count, extent)
    return rows.split(max(_CHUNK // extent, 1))


def _draw_values(shape, domain, generator, dtype):
    """Values inside the domain, each as likely."""
    device = generator.device
    if domain.values is not None:
        values = domain.values.to(device)
        return values[torch.randint(len(values), shape, generator=generator, device=device)]
    low, high = int(domain.low), int(domain.high)
    # The largest int64 is no legal end for a draw.
    high = min(high + 1, torch.iinfo(torch.int64).max)
    drawn = torch.randint(low, high, shape, generator=generator, device=device)
    return drawn.to(dtype)


def _resample(domain):
    def change(tensor, generator):
        for part in tensor.view(-1).split(_CHUNK):
            if domain.values is not None and part.dtype == torch.bool:
                ones = torch.rand(part.shape, generator=generator, device=part.device) < 0.5
                part.copy_(ones)
            else:
                part.copy_(_draw_values(part.shape, domain, generator, part.dtype))

    return change


def _patterns(domain):
    """Half of the rows are drawn anew; the others are one number, one but for a few elements, in
    runs of one length or another, or without a number with which the graph compares, wholly or
    up to a late place."""
    is_mask = domain.values is not None and domain.values.dtype == torch.bool
    compared = [] if is_mask else domain.uses.compared
    compared = [v for v in compared if domain.low <= v <= domain.high]

    def change(tensor, generator):
        device = generator.device
        chosen = torch.tensor(compared, dtype=tensor.dtype, device=device)
        for rows in pieces(tensor):
            count, extent = shape = rows.shape

            def drawn(*shape, dtype=rows.dtype):
                return _draw_values(shape, domain, generator, dtype).to(dtype)

            def chance(most, *shape):
                return torch.randint(most, shape, generator=generator, device=device)

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
            for number, pattern in enumerate((one, few, runs, without, torch.where(late, plain, without))):
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


def move_some_ways():
    """Ways to open or close a mask here and there, of which one may be defined."""
    return [_move_some(False), _move_some(True)]


def _move_some(is_up):
    """Some elements become the largest, or the smallest: a mask that opens, or closes."""

    def change(tensor, generator):
        flags = tensor.view(torch.uint8) if tensor.dtype == torch.bool else tensor
        low, high = flags.aminmax()
        parts = flags.view(-1).split(_CHUNK) if flags.is_contiguous() else [flags]
        for part in parts:
            places = torch.rand(part.shape, generator=generator, device=part.device) < 0.3
            part.masked_fill_(places, high if is_up else low)

    return change


def _mirror(tensor, generator):
    """Half of the elements have the other sign, but for some next to zero."""
    for part in tensor.view(-1).split(_CHUNK):
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


def _equal_rows(domain, ratio):
    """Such a part of the rows is all true or, more of them, all false, most of these but for a
    few elements. Of a few rows one is wholly false, of four another wholly true, in any case."""

    def change(tensor, generator):
        _resample(domain)(tensor, generator)
        for rows in pieces(tensor):
            count = len(rows)
            kind = torch.rand(count, 1, generator=generator, device=rows.device) / ratio
            value = (kind < 0.2).expand(rows.shape)
            has_others = (kind < 0.1) | ((kind >= 0.2) & (kind < 0.75))
            is_other = some_of_each(rows.shape, generator) & has_others
            rows.copy_(torch.where(kind < 1, value ^ is_other, rows))
            if count > 1:
                places = torch.randperm(count, generator=generator, device=rows.device)
                rows[places[0]] = False
                if count >= _LEAST_ROWS:
                    rows[places[1]] = True

    return change


def some_of_each(shape, generator):
    """A few elements of each row, as many as `_MEMBERS` has in turn, at any places."""
    count, extent = shape
    device = generator.device
    start = torch.randint(len(_MEMBERS), (1,), generator=generator, device=device)
    turn = (torch.arange(count, device=device) + start) % len(_MEMBERS)
    members = torch.tensor(_MEMBERS, device=device)[turn].unsqueeze(1)
    order = torch.rand(shape, generator=generator, device=device).argsort(dim=1).argsort(dim=1)
    return order < members


def make_first_row_true(tensor, _):
    """All that comes first in a mask is true, as what comes first in floats is zero."""
    next(iter(pieces(tensor)))[0] = True


def _true_rows(tensor, generator):
    for rows in pieces(tensor):
        rows |= torch.rand(len(rows), 1, generator=generator, device=rows.device) < 0.25


def _ends(low, high, special):
    """Rows that are all at an end, of both ends, all distinct, and with special values."""
    span = high - low + 1

    def change(tensor, generator):
        device = tensor.device
        for rows in pieces(tensor):
            count, extent = rows.shape
            kind = torch.randint(6, (count, 1), generator=generator, device=device)
            bits = torch.randint(2, rows.shape, generator=generator, device=device)
            ends = torch.where(kind == 0, 0, torch.where(kind == 1, 1, bits))
            drawn = torch.where(ends == 0, int(low), int(high))
            start = torch.randint(extent, (count, 1), generator=generator, device=device)
            other = low + (torch.arange(extent, device=device) + start) % span
            drawn = torch.where(kind == 3, other.to(drawn.dtype), drawn)
            for value in special:
                places = torch.rand(rows.shape, generator=generator, device=device)
                share = torch.where(kind > 4, _MOST_SPECIAL, _FEW_SPECIAL) / len(special)
                found = _around(value, rows.shape, generator)
                drawn = torch.where((places < share) & (kind > 3), found, drawn)
            rows.copy_(torch.where(kind == 5, rows.long(), drawn) if not special else drawn)
        if special and tensor.numel():
            # A part in any case: a small tensor may have no row of that kind, and one special
            # element of many hardly moves a mean over them. What comes first has its own: it
            # may be all that is read.
            _put_some(tensor.view(-1), special, generator)
            if tensor.dim() > 1:
                _put_some(tensor.view(-1)[: tensor.shape[-1]], special, generator)

    return change


def _put_some(flat, values, generator):
    """A quarter of the elements, a part of a large vector, become one of `values`."""
    count = max(min(flat.numel(), _SMALL) // 4 // len(values), 1)
    size = min(flat.numel(), _CHUNK)
    order = torch.randperm(size, generator=generator, device=flat.device)
    for number, value in enumerate(values[: flat.numel() // 2]):
        mine = order[number * count : (number + 1) * count]
        flat[mine] = _around(value, mine.shape, generator).to(flat.dtype)


def _around(value, shape, generator):
    """The value, of numbers that no double has one a little above: there quotients differ."""
    found = torch.full(shape, int(value), device=generator.device)
    if abs(value) < _NO_DOUBLE:
        return found
    return found + torch.randint(_NO_DOUBLE_SPAN, shape, generator=generator, device=found.device)


def _ordinary_ways(domain):
    """Whole and equal floats become ordinary ones, but for some rows that are all at one end
    of what was seen, as a mask has them."""
    low, high = _finite_range(domain)
    scale = max(abs(low), abs(high)) or 1.0

    def normal(tensor, generator):
        for part in tensor.view(-1).split(_CHUNK):
            drawn = torch.randn(part.shape, generator=generator, device=part.device)
            part.copy_(drawn.mul_(scale))
        _put_rows_at_ends(tensor, generator, (low, high) if low < high else ())

    def uniform(tensor, generator):
        start, end = (low, high) if low < high else sorted((0.5 * low, 1.5 * low))
        if domain.uses.is_probability:
            start, end = 0.0, 1.0
        for part in tensor.view(-1).split(_CHUNK):
            drawn = torch.rand(part.shape, generator=generator, device=part.device)
            part.copy_(drawn.mul_(end - start).add_(start))

    return [uniform] if domain.uses.is_probability else [normal, uniform]


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


def _finite_range(domain):
    values = domain.values.double() if domain.values is not None else torch.tensor([])
    if not values.numel() and math.isfinite(domain.low) and math.isfinite(domain.high):
        return domain.low, domain.high
    values = values[values.isfinite()]
    return (values.min().item(), values.max().item()) if values.numel() else (0.0, 1.0)
