# SPDX-License-Identifier: Apache-2.0
"""Ways to open and close a mask: rows, columns and places, in place."""

import torch

from .pieces import CHUNK, pieces, some_of_each

# Rows of a mask of which one may be all false and one all true.
_LEAST_ROWS = 4


def equal_rows(ratio):
    """Such a part of the rows is all true or, more of them, all false, most of these but for a
    few elements. Of a few rows one is wholly false, of four another wholly true, in any case."""

    def change(tensor, generator):
        for part in tensor.view(-1).split(CHUNK):
            part.copy_(torch.rand(part.shape, generator=generator, device=part.device) < 0.5)
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


def equal_columns(mask, generator):
    """Each place of the last axis has one value in all rows, one of them true in any case."""
    extent = mask.shape[-1]
    is_true = torch.rand(extent, generator=generator, device=mask.device) < 0.5
    is_true[torch.randint(extent, (1,), generator=generator, device=mask.device)] = True
    mask.copy_(is_true.expand(mask.shape))


def true_rows(tensor, generator):
    for rows in pieces(tensor):
        rows |= torch.rand(len(rows), 1, generator=generator, device=rows.device) < 0.25


def make_first_row_true(tensor, _):
    """All that comes first in a mask is true, as what comes first in floats is zero."""
    next(iter(pieces(tensor)))[0] = True


def move_some_ways():
    """Ways to open or close a mask here and there, of which one may be defined."""
    return [_move_some(False), _move_some(True)]


def _move_some(is_up):
    """Some elements become the largest, or the smallest: a mask that opens, or closes."""

    def change(tensor, generator):
        flags = tensor.view(torch.uint8) if tensor.dtype == torch.bool else tensor
        low, high = flags.aminmax()
        parts = flags.view(-1).split(CHUNK) if flags.is_contiguous() else [flags]
        for part in parts:
            places = torch.rand(part.shape, generator=generator, device=part.device) < 0.3
            part.masked_fill_(places, high if is_up else low)

    return change
