# SPDX-License-Identifier: Apache-2.0
"""Tensors of which the first rows, columns and elements are alike, the last ones and some in the
middle, and the rest is as it was.

Who looks at one row of a filter, one tap or one element, and takes it for the whole, is wrong where
that one is zero, or equal to the next, constant, of one sign or one, and others are not. So all the
places where one looks are it at once, along each axis. A way is a function of (tensor, generator)
that changes it in place.
"""

import torch

from .drawing import pick

# Slices of an axis of which one goes, at most.
_STAY = 2


def zeros(tensor, generator):
    """A frame of zeros."""
    _fill(tensor, 0.0, generator)


def ones(tensor, generator):
    """A frame of ones."""
    _fill(tensor, 1.0, generator)


def of_size(sign):
    """The way to a frame of one number, about as large as the elements; short, so that sums of it
    are exact."""

    @torch.no_grad()
    def change(tensor, generator):
        size = tensor.to(torch.promote_types(tensor.dtype, torch.float32)).square().mean().sqrt()
        _fill(tensor, sign * torch.exp2(size.log2().round()).item() if size > 0 else sign, generator)

    return change


@torch.no_grad()
def _fill(tensor, value, generator):
    for axis, extent in enumerate(tensor.shape):
        moved = tensor.movedim(axis, 0)
        for place in _places(extent, generator):
            moved[place] = value


def _places(extent, generator):
    """Those of an axis that go: both ends, the second, and the middle; some where these are most."""
    places = list(dict.fromkeys([0, extent - 1, 1, extent // 2]))
    while len(places) > extent // _STAY:
        places.remove(pick(places, generator))
    return places
