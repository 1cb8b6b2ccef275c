# SPDX-License-Identifier: Apache-2.0
"""Few whole numbers of a small domain: workload by workload each has the next value, so that all are
met at each place, and with several inputs all pairs.

Of twelve months that one element may be chance leaves one out in twenty draws as often as not. A way
is a function of (tensor, generator) that changes it in place.
"""

import torch

# Most values of a domain that is small; elements of a tensor, in parts of these, of which chance
# leaves none out; most columns that are roles of their own.
_MOST_VALUES, _PARTS, _MOST_ROLES = 64, 2, 4


def roles(tensor):
    """How many columns have a role of their own, such as where an edge begins and where it ends."""
    return tensor.shape[-1] if tensor.dim() > 1 and tensor.shape[-1] <= _MOST_ROLES else 1


def turns(tensor, low, high, before):
    """Gives the way of a workload by its number, or None where chance does as well. `before` is
    how many roles other inputs have before this one."""
    span = high - low + 1
    if not 1 < span <= _MOST_VALUES or tensor.numel() > _PARTS * span:
        return None
    columns = roles(tensor)

    def way_of(number):
        def change(tensor, _):
            rows = tensor.view(-1, columns)
            at = number * len(rows) + torch.arange(len(rows), device=tensor.device)
            for column in range(columns):
                # The next digit of a number in that base.
                digit = at.div(span ** (before + column), rounding_mode="floor")
                rows[:, column] = (low + digit % span).to(rows.dtype)

        return change

    return way_of
