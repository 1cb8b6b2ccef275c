# SPDX-License-Identifier: Apache-2.0
"""Patterns of whole numbers and masks: labels that come in turn or in runs, nodes that make rings
and hubs, groups of which one has most, rows of a mask with one, none or a gap.

A way is a function of (tensor, generator) that changes it in place. They come in groups of (weight,
way), through which mixed workloads go in turn.
"""

import torch

from .drawing import one_of, pick, uniform
from .pieces import pieces
from .special_places import put_on_lines

# Powers of ten by which whole numbers are beyond what was seen.
_BEYOND = 3.0
# Rows and columns of a grid through which something winds.
_LEAST_WINDING = 4
# Most elements that get a pattern at once.
_MOST_FILLED = 1 << 24


def others(tensor, domain):
    """Groups of an input that holds no ordinary floats."""
    uses = domain.uses
    if tensor.dtype == torch.bool:
        return [masks(), _WHOLE_MASKS] * 2
    if tensor.is_floating_point():
        is_mask = domain.values is not None and len(domain.values) == 2
        values = (domain.low, domain.high)
        return [whole_floats(*values, masks()), whole_floats(*values, _WHOLE_MASKS)] if is_mask else []
    if uses.is_ordered:
        # The first one is where it was.
        is_offset = uses.legal and tensor.dim() == 1 and domain.low == 0
        return [offsets(uses.legal[1])] * 3 if is_offset else []
    if uses.is_written or tensor.numel() > _MOST_FILLED:
        return []
    low, high = uses.legal or (int(domain.low), int(domain.high))
    special = tuple(uses.turning(int(low), int(high)))
    found = numbers(tensor, int(low), int(high), (uses.special if uses.legal else ()) + special)
    return found if uses.legal or uses.is_restricted else [*found, [(1, _beyond(int(high)))]]


def _beyond(high):
    """All of them are beyond what was seen, by as much or up to a thousand times as much."""

    def change(tensor, generator):
        by = 1 + int(max(abs(high), 1) * 10.0 ** uniform(generator, 0.0, _BEYOND))
        tensor.add_(min(by, torch.iinfo(tensor.dtype).max // 2 - max(high, 0)))

    return change


def numbers(tensor, low, high, special=()):
    """Groups of whole numbers from `low` to `high`, both legal, as `special` ones are: labels,
    indices, and pairs of nodes."""
    span = high - low + 1

    def filled(name):
        return lambda values, generator: _fill(values, name, low, span, special, generator)

    if tensor.dim() != 2 or 2 not in tensor.shape or tensor.numel() <= 4:
        return [[(1, filled(name))] for name in _FILLS]

    def paired(name, other):
        def change(values, generator):
            first, second = values.unbind(0 if values.shape[0] == 2 else 1)
            _fill(first, name, low, span, special, generator)
            if isinstance(other, int):
                second.copy_((first - low + other) % span + low)
            elif other == "next":
                second.copy_((first + 1).clamp(max=high))
            else:
                _fill(second, other, low, span, special, generator)

        return [(1, change)]

    # Loops, rings, chains, hubs, one edge, few nodes that are met, and any of these.
    pairs = [("any", 0), ("in turn", 1), ("in turn", "next"), ("any", "one"), ("one", "any"), ("one", "one")]
    pairs += [("any", "few"), ("in turn", "in turn"), ("stretch", "some"), ("some", "often")]
    return [paired(*names) for names in pairs]


_FILLS = ("in turn", "backwards", "one", "few", "often", "stretch", "some", "runs", "any")


def _fill(tensor, name, low, span, special, generator):
    """All of a tensor in one pattern, now and then in order."""
    count, device = tensor.numel(), tensor.device

    def drawn(most, *shape):
        return torch.randint(max(most, 1), shape or (count,), generator=generator, device=device)

    place = torch.arange(count, device=device)
    if tensor.dim() == 2 and uniform(generator, 0, 1) < 0.5:
        # The number of its row, as in a table of neighbours.
        place = place // tensor.shape[1]
    one = drawn(span, 1)
    if special and uniform(generator, 0, 1) < 0.5:
        one = torch.tensor([special[int(drawn(len(special), 1))] - low], device=device)
    found = drawn(span)
    if name == "in turn":
        found = (place + drawn(3, 1)) % span
    elif name == "backwards":
        found = (span - 1 - place) % span
    elif name == "one":
        found = one.expand(count)
    elif name == "few":
        found = drawn(span, 2)[drawn(2)]
    elif name == "often":
        chance = torch.rand(count, generator=generator, device=device)
        found = torch.where(chance < uniform(generator, 0.3, 1.0), one, found)
    elif name == "stretch":
        # At the end as often as not.
        length = max(int(uniform(generator, 0.1, 0.95) * count), 1)
        start = (count - length) * (uniform(generator, 0, 1) < 0.5)
        found = torch.where((place >= start) & (place < start + length), one, found)
    elif name == "some":
        # Those at one end or the other.
        few = max(int(span * uniform(generator, 0.1, 0.9)), 1)
        found = drawn(few) + (span - few) * (uniform(generator, 0, 1) < 0.5)
    elif name == "runs":
        runs = drawn(span, max(count // int(uniform(generator, 2, 9)), 1))
        found = runs.repeat_interleave(-(-count // len(runs)))[:count]
    if uniform(generator, 0, 1) < 0.3:
        found = found.sort(descending=uniform(generator, 0, 1) < 0.3).values
    found = (found + low).view(tensor.shape)
    if special and count > 1 and uniform(generator, 0, 1) < 0.5:
        put_on_lines(found, special, generator)
    tensor.copy_(found)


def offsets(total):
    """(weight, way) of where groups begin, of so many elements: one long group, many empty ones, the
    first or the last among them."""

    def change(tensor, generator):
        count, device = tensor.numel(), tensor.device
        if count < 2:
            return
        share = torch.rand(count, generator=generator, device=device)
        size = share.pow(10.0 ** uniform(generator, -0.5, 1.5))
        size[torch.rand(count, generator=generator, device=device) < uniform(generator, -0.3, 0.8)] = 0
        size[-1] *= uniform(generator, 0, 1) < 0.5
        ends = (size.cumsum(0) / size.sum().clamp(min=1e-9) * total).round().long()
        tensor[1:] = ends[:-1].clamp(max=total).to(tensor.dtype)
        tensor[0] = 0

    return [(1, change)]


# Nothing is open, or everything.
_WHOLE_MASKS = [(2, lambda mask, _: mask.fill_(False)), (1, lambda mask, _: mask.fill_(True))]


def masks():
    """(weight, way) of booleans: each row open, closed, with one or two, with a gap and so on."""
    return [(3, _mask_rows), (1, _one_pattern), (1, _winding)]


def _winding(mask, generator):
    """A way that winds through the last two axes, as long as one can be; its walls are closed."""
    if mask.dim() < 2 or min(mask.shape[-2:]) < _LEAST_WINDING:
        _one_pattern(mask, generator)
        return
    is_across = uniform(generator, 0, 1) < 0.5
    grid = mask.transpose(-1, -2) if is_across else mask
    grid.fill_(False)
    grid[..., ::2, :] = True
    # From each row to the next there is one passage, at either end in turn.
    grid[..., 1::4, -1] = True
    grid[..., 3::4, 0] = True


class _Rows:
    """Places of some rows of a mask, and two of each row by chance."""

    def __init__(self, shape, generator):
        self.shape, self.generator, self.device = shape, generator, generator.device
        count, extent = shape
        self.last = extent - 1
        self.place = torch.arange(extent, device=self.device)
        self.first, second = self._drawn(count, extent), self._drawn(count, extent)
        self.low, self.high = torch.minimum(self.first, second), torch.maximum(self.first, second)

    def _drawn(self, count, extent):
        return torch.randint(extent, (count, 1), generator=self.generator, device=self.device)

    def some(self, part):
        return torch.rand(self.shape, generator=self.generator, device=self.device) < part


_PATTERNS = (
    lambda rows: rows.place >= 0,
    lambda rows: rows.place < 0,
    lambda rows: rows.place == rows.first,
    lambda rows: rows.place != rows.first,
    lambda rows: (rows.place == rows.low) | (rows.place == rows.high),
    lambda rows: (rows.place == 0) | (rows.place == rows.last),
    lambda rows: (rows.place < rows.low) | (rows.place > rows.high),
    lambda rows: rows.place < rows.first,
    lambda rows: rows.place >= rows.first,
    lambda rows: (rows.place >= rows.low) & (rows.place <= rows.high),
    lambda rows: rows.place % 2 == rows.first % 2,
    lambda rows: rows.some(0.5),
    lambda rows: rows.some(0.1),
)


def _mask_rows(mask, generator):
    for rows in pieces(mask):
        turn = torch.randperm(len(_PATTERNS), generator=generator, device=rows.device).tolist()
        of_row = torch.arange(len(rows), device=rows.device) % len(_PATTERNS)
        found = rows.clone()
        for number, kind in enumerate(turn[: len(rows)]):
            made = _PATTERNS[kind](_Rows(rows.shape, generator))
            found = torch.where((of_row == number)[:, None], made.expand(rows.shape), found)
        rows.copy_(found)


def _one_pattern(mask, generator):
    """All rows in one."""
    pattern = pick(_PATTERNS, generator)
    for rows in pieces(mask):
        rows.copy_(pattern(_Rows(rows.shape, generator)).expand(rows.shape))


def whole_floats(low, high, ways):
    """(weight, way) of floats of two values, as masks and labels have them, by those of a mask."""

    def change(tensor, generator):
        mask = torch.zeros(tensor.shape, dtype=torch.bool, device=tensor.device)
        one_of(ways, generator)(mask, generator)
        tensor.copy_(torch.where(mask, high, low))

    return [(1, change)]
