# SPDX-License-Identifier: Apache-2.0
"""A run whose operators pick others of elements that are equal, or as near as rounding brings them.

PyTorch promises no order of equal elements, and where something is gathered by the places of what
was picked, outputs are others for another honest program. Unlike `rounding.Disturbed` such a run
changes nothing else, so that where its outputs differ a pick has made the difference.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .schema import arguments_by_name

# Operators that pick along an axis, and those of them that give places alone.
_PICKS = frozenset("topk sort argmax argmin max min kthvalue median nanmedian".split())
_PLACES = frozenset({"argmax", "argmin"})
_OF_SETS = frozenset({"topk", "sort"})
# In how many units of their type scores are near: those of FP32, whatever the run computes in.
_NEAR, _UNIT = 4, 2.0**-24
# Orders that begin at so many places, a power of two, each there and back, until chance decides:
# where one of up to so many is picked, each was.
_STARTS = 16
# The first two runs are an order and its reverse, and none has one element twice.
_WHOLE = 2
_SEED = 20261130


class OtherPicks(TorchDispatchMode):
    """While active, picks are those of another order of each axis, which `number` decides."""

    def __init__(self, number):
        super().__init__()
        self._number = number
        # Whether there was something to pick, and whether of equal elements.
        self.has_picked = self.has_ties = False
        self._drawn = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func._schema.name.split("::")[1]
        if func.namespace != "aten" or name not in _PICKS:
            return func(*args, **kwargs)
        named = arguments_by_name(func, args, kwargs)
        if not _is_pick(name, named):
            return func(*args, **kwargs)
        self.has_picked = True
        scores, axis = named["self"], named.get("dim", None if name in _PLACES else -1)
        flat = scores.reshape(-1) if axis is None else scores
        order = self._order(flat.shape[axis or 0], flat.device)
        near = self._near(flat).index_select(axis or 0, order)
        if name in _OF_SETS:
            places = order[self._of_set(name, near, named)]
        else:
            places = order[self._first(func, name, near, named)]
        if name == "topk" and not named.get("sorted", True):
            shuffled = self._order(places.shape[axis], flat.device)
            places = places.index_select(axis, shuffled)
        if name in _PLACES:
            return places
        if name in _OF_SETS or named.get("keepdim", False):
            return scores.gather(axis, places), places
        return scores.gather(axis, places.unsqueeze(axis)).squeeze(axis), places

    def _of_set(self, name, scores, named):
        """Places of what is first in order. Where more are equal to the last of a top-k than it
        takes, every other run has one of these in place of all, so that outputs are as far from
        others as sets of any of them bring them."""
        axis = named.get("dim", -1)
        is_down = named.get("largest", True) if name == "topk" else named.get("descending", False)
        values, places = torch.sort(scores, dim=axis, descending=is_down, stable=True)
        count = named["k"] if name == "topk" else scores.shape[axis]
        found = places.narrow(axis, 0, count)
        # A pick and the one behind it.
        if pairs := min(count, scores.shape[axis] - 1):
            before, behind = values.narrow(axis, 0, pairs), values.narrow(axis, 1, pairs)
            self.has_ties = self.has_ties or bool(_are_near(before, behind).any())
        if self._number < _WHOLE or not self._number % 2 or not 0 < count < scores.shape[axis]:
            return found
        last, after = values.narrow(axis, count - 1, 1), values.narrow(axis, count, 1)
        is_tied = _are_near(values.narrow(axis, 0, count), last) & _are_near(after, last)
        one = found.gather(axis, is_tied.to(torch.uint8).argmax(axis, keepdim=True))
        return torch.where(is_tied, one, found)

    def _first(self, func, name, scores, named):
        """Places in `scores`, of equal ones the first as a rule."""
        is_kept, axis = bool(named.get("keepdim", False)), named.get("dim", -1)
        if name in _PLACES:
            axis = named.get("dim")
            axis = 0 if axis is None else axis
        arguments = [named["k"]] if name == "kthvalue" else []
        found = func(scores, *arguments, axis, is_kept)
        found = found if name in _PLACES else found[1]
        value = scores.gather(axis, found if is_kept else found.unsqueeze(axis))
        self.has_ties = self.has_ties or bool((_are_near(scores, value).sum(axis) > 1).any())
        return found

    def _near(self, scores):
        """Scores of which those that rounding may make equal are so, or are in any order."""
        if not scores.is_floating_point():
            return scores
        if self._number < 2 * _STARTS:
            narrow = scores.float()
            return torch.where(narrow.isfinite(), narrow.to(scores.dtype), scores)
        by = torch.rand(scores.shape, generator=self._generator(scores.device), device=scores.device)
        unit = max(_UNIT, torch.finfo(scores.dtype).eps)
        # Infinities stay.
        found = scores * (1 + _NEAR * unit * (2 * by - 1)).to(scores.dtype)
        return torch.where(scores.isfinite() & found.isfinite(), found, scores)

    def _order(self, extent, device):
        if self._number >= 2 * _STARTS:
            generator = self._generator(device)
            return torch.randperm(extent, generator=generator, device=device)
        turn, is_back = divmod(self._number, 2)
        start = extent * _reversed(turn) // _STARTS
        order = torch.arange(extent, device=device).roll(-start)
        return order if is_back else order.flip(0)

    def _generator(self, device):
        self._drawn += 1
        seed = _SEED + 1000003 * self._number + self._drawn
        return torch.Generator(device).manual_seed(seed)


def _reversed(turn):
    """The bits of a turn the other way round: the first few are far apart."""
    return int(f"{turn + _STARTS:b}"[:0:-1], 2)


def _is_pick(name, named):
    """Whether an operator leaves open what it picks; a stable sort does not."""
    scores = named["self"]
    if "other" in named or not scores.numel() or not scores.dim() or named.get("stable"):
        return False
    return name in _PLACES or name in _OF_SETS or name == "kthvalue" or "dim" in named


def _are_near(one, other):
    if not one.is_floating_point():
        return one == other
    unit = 2 * _NEAR * max(_UNIT, torch.finfo(one.dtype).eps)
    return (one == other) | ((one - other).abs() <= unit * other.abs())
