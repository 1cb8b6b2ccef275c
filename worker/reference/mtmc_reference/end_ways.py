# SPDX-License-Identifier: Apache-2.0
"""Ways to bring whole numbers to the ends of their domain and to values that operators treat as special."""

import torch

from .pieces import pieces
from .special_places import around, put_on_lines, put_some

# Parts of a row that are special values, where a row has few or many.
_FEW_SPECIAL, _MOST_SPECIAL = 0.1, 0.6
# Whole numbers beyond 32 bits: one whose lower half is 0, two that no float tells apart, and
# two that no double has.
_WIDE = (1 << 33, -(1 << 33) + 3, (1 << 40) + 5, (1 << 40) + 6, (1 << 57) + 3, -(1 << 60) - 5)


def special_of(dtype):
    """Whole numbers that only arithmetic takes, and that narrower types do not hold."""
    if dtype == torch.int64:
        return _WIDE
    ends = torch.iinfo(dtype)
    return (ends.max, ends.min) if ends.min else (ends.max, ends.max // 2 + 1)


def ends_of(low, high, special, compared=()):
    """Rows that are all at an end, of both ends, all distinct, and with special values; numbers
    with which the graph compares stand wherever a program may look."""
    span = high - low + 1
    everywhere = tuple(dict.fromkeys((*special, *compared)))

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
                found = around(value, rows.shape, generator)
                drawn = torch.where((places < share) & (kind > 3), found, drawn)
            rows.copy_(torch.where(kind == 5, rows.long(), drawn) if not special else drawn)
        if special and tensor.numel():
            # A part in any case: one special element of many hardly moves a mean over them. What
            # comes first has its own: it may be all that is read.
            put_some(tensor.view(-1), special, generator)
            if tensor.dim() > 1:
                put_some(tensor.view(-1)[: tensor.shape[-1]], special, generator)
        if everywhere and tensor.numel() > 1:
            put_on_lines(tensor, everywhere, generator)

    return change
