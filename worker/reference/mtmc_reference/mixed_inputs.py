# SPDX-License-Identifier: Apache-2.0
"""What an input does in mixed workloads, by what it holds: (groups, ways by lines, mild ones, kind),
as mixed.Choice has them."""

import torch

from . import in_turn, mixed, patterns, redraw


def of_floats(value, may_be_small, is_alone, sizes=()):
    """Of ordinary floats, before guards of those `sizes`."""
    groups, lines = mixed.floats(may_be_small, is_alone, sizes)
    kind = "inputs" if may_be_small and value.element_size() > 2 else ""
    return [*groups, *mixed.squares(value)], lines, mixed.mild_floats(), kind


def of_others(value, domain, may_be_small, is_alone, sizes=()):
    """Of whole numbers, masks, and floats that are none of the others."""
    uses = domain.uses
    is_bound = uses.is_restricted or uses.is_ordered or uses.is_written or uses.special
    if value.is_floating_point() and domain.is_constant and not (is_bound or uses.is_probability):
        # Such as a state that begins with zeros.
        spread, *_ = redraw.extreme_ways(value, domain)
        is_wide = may_be_small and value.element_size() > 2
        return *mixed.floats_of_one_value(is_wide, is_alone, spread, sizes), (), ""
    kind = "" if value.is_floating_point() else "masks" if value.dtype == torch.bool else "numbers"
    return patterns.others(value, domain), (), (), "" if is_bound else kind


def turns(value, domain, before):
    """What gives the way of a workload in which few whole numbers come in turn; None without.
    `before` is how many roles other inputs have."""
    uses = domain.uses
    if value.is_floating_point() or value.dtype == torch.bool or uses.is_ordered or uses.is_written:
        return None
    low, high = uses.legal or (int(domain.low), int(domain.high))
    return in_turn.turns(value, int(low), int(high), before)
