# SPDX-License-Identifier: Apache-2.0
"""Where whole numbers that operators treat as special stand in a tensor.

A program may read one column of it, its first row or its last: a special value that chance puts
somewhere is met there by luck alone.
"""

import torch

from .pieces import CHUNK, SMALL, pieces

# Where whole numbers begin that no double has, and how many above one of those are drawn.
_NO_DOUBLE, _NO_DOUBLE_SPAN = 1 << 53, 1 << 20
# Rows for one special value of a column: most elements are others.
_ROWS_PER_VALUE = 4


def put_some(flat, values, generator):
    """A quarter of the elements, a part of a large vector, become one of `values`."""
    count = max(min(flat.numel(), SMALL) // 4 // len(values), 1)
    size = min(flat.numel(), CHUNK)
    order = torch.randperm(size, generator=generator, device=flat.device)
    for number, value in enumerate(values[: flat.numel() // 2]):
        mine = order[number * count : (number + 1) * count]
        flat[mine] = around(value, mine.shape, generator).to(flat.dtype)


def put_on_lines(tensor, values, generator):
    """Each place along the last axis is one of `values` in some row, and half of the rows, the
    first and the last among them, have one; of few rows, some places. So are both ends of a
    vector.

    REQUIRES: several elements.
    """
    for rows in pieces(tensor):
        count, extent = rows.shape
        half = torch.randperm(count, generator=generator, device=rows.device)[: count // 2]
        chosen = torch.unique(torch.cat([half, half.new_tensor([0, count - 1])]))
        every = torch.arange(extent, device=rows.device)
        part = len(chosen) / _ROWS_PER_VALUE
        columns = every[torch.rand(extent, generator=generator, device=rows.device) < part]
        for _ in range(min(max(int(part), 1), len(values))):
            _put(rows, chosen[_drawn(len(chosen), columns, generator)], columns, values, generator)
        if tensor.dim() > 1:
            _put(rows, chosen, _drawn(extent, chosen, generator), values, generator)
    if tensor.dim() == 1:
        ends = torch.tensor([0, tensor.numel() - 1], device=tensor.device)
        _put(tensor.view(1, -1), torch.zeros_like(ends), ends, values, generator)


def _put(rows, row, column, values, generator):
    """One of the values at each of some places."""
    found = torch.stack([around(value, row.shape, generator) for value in values])
    which = _drawn(len(values), row, generator)
    rows[row, column] = found.gather(0, which[None])[0].to(rows.dtype)


def _drawn(most, like, generator):
    return torch.randint(most, like.shape, generator=generator, device=like.device)


def around(value, shape, generator):
    """The value, of numbers that no double has one a little above: there quotients differ."""
    found = torch.full(shape, int(value), device=generator.device)
    if abs(value) < _NO_DOUBLE:
        return found
    return found + torch.randint(_NO_DOUBLE_SPAN, shape, generator=generator, device=found.device)
