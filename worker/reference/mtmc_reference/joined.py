# SPDX-License-Identifier: Apache-2.0
"""Whole numbers that are compared together, so that whoever packs them into one takes some for
others.

Three numbers fit into one word as long as each is below 1,000, or 1,024. Where the one that has the
higher place is one more, and the next one a whole step less, the words are equal; where a number is
a step beyond what its bits hold, nothing is left of it, or its neighbour grows. No draw of single
numbers meets that: so rows are all the same but for such pairs, of many steps at once. A way is a
function of (tensor, generator) that changes it in place.
"""

import torch

from .graph_asks import MOST_FIELDS

# Of how much a place may be worth.
_STEPS = (100, 256, 1000, 1 << 10, 4096, 10_000, 1 << 16, 100_000, 1_000_000, 1 << 20, 1 << 21, 1 << 32)
# What floats are multiples of, sizes up to which they have each, and rows of each step.
_UNITS, _MOST_OF_FLOATS, _ROWS = (0.5, 1.0), 1 << 21, 4
# The largest number that all rows have.
_COMMON = 3
# Part of the rows that stay, where there are more than these.
_STAY, _MANY = 0.3, 96


def ways(names, seed, is_reversed):
    """Ways by name of what is compared together, in the order of their places or the reverse; the
    same `seed` makes the same rows of them."""
    found = {}
    for number, name in enumerate(names):
        place = len(names) - 1 - number if is_reversed else number
        found[name] = _fields(place, max(len(names), 2), seed, is_reversed)
    return found


def at(step):
    """The way to numbers of which about half are a step larger, and half of these one more."""

    def change(tensor, generator):
        if not tensor.numel() or step >= torch.iinfo(tensor.dtype).max // 2:
            return
        kind = torch.randint(4, tensor.shape, generator=generator, device=tensor.device)
        low = tensor.min()
        tensor.copy_(low + kind % 2 + kind.div(2, rounding_mode="floor") * step)

    return change


def _fields(place, count, seed, is_reversed):
    def change(tensor, generator):
        has_columns = tensor.dim() > 1 and 2 <= tensor.shape[-1] <= MOST_FIELDS
        columns = tensor.shape[-1] if has_columns else 1
        rows = tensor.view(-1, columns)
        steps = _steps_of(tensor.dtype)
        # Numbers of eight bits have no room for a second one.
        if not steps:
            return
        total = columns if has_columns else count
        shared = torch.Generator(tensor.device).manual_seed(seed)
        deltas = _deltas(len(rows), total, steps, shared)
        if is_reversed and has_columns:
            deltas = deltas.flip(1)
        own = deltas if has_columns else deltas[:, place : place + 1]
        if tensor.is_floating_point():
            own = own * _UNITS[seed % len(_UNITS)]
        stays = torch.rand(len(rows), 1, generator=generator, device=tensor.device) < _STAY
        rows.copy_(torch.where(stays & (len(rows) > _MANY), rows, own.to(rows.dtype)))

    return change


def _steps_of(dtype):
    if dtype == torch.bool:
        return []
    most = _MOST_OF_FLOATS if dtype.is_floating_point else torch.iinfo(dtype).max // 2
    return [step for step in _STEPS if step <= most]


def _deltas(rows, fields, steps, generator):
    """Rows of numbers, each four of which go with one step and one field: as they are, with one more
    in the field, with one step more in the next field, or in this one."""

    def drawn(most, *shape):
        return torch.randint(most, shape, generator=generator, device=generator.device)

    device = generator.device
    groups = -(-rows // _ROWS)
    common = drawn(_COMMON + 1, fields)
    order = torch.randperm(len(steps), generator=generator, device=device)
    step = torch.tensor(steps, device=device)[order].repeat(-(-groups // len(steps)))[:groups]
    each = torch.arange(groups, device=device)
    field = (each + drawn(_COMMON)) % max(fields - 1, 1)
    found = common.expand(groups, _ROWS, fields).clone()
    found[each, 1, field] += 1
    found[each, 2, (field + 1).clamp(max=fields - 1)] += step
    found[each, 3, field] += step
    found = found.view(-1, fields)
    return found[torch.randperm(len(found), generator=generator, device=device)][:rows]
