# SPDX-License-Identifier: Apache-2.0
"""Elements of outputs that are others where a model picks others of equal elements.

What a top-k picked of tied distances, and what is gathered by those places, any honest program may
have otherwise. Such elements are found by runs that pick others (`other_picks`), and only when a
program is beyond its bound. Where they are the smaller part of an output anything finite may stand
there: the rest decides. Where they are most of it, as with whole-numbered scores, each must be
near what the runs have there.
"""

import torch

from .effort import Effort
from .other_picks import OtherPicks

# Runs, the later ones if those before took no more than so many seconds.
_MOST_RUNS, _SECONDS = 40, 1.0
# Part of an element by which it differs: runs that pick differ in nothing else.
_LEAST = 1e-6
# Part of an output up to which picks decide the smaller part; how many times what the runs differ
# by an element may be beyond them.
_SMALLER, _BEYOND = 0.5, 0.5


class Ties:
    """What picks decide in the outputs of one workload.

    `run(observer)` gives the outputs of a run of the oracle, or None, and `reference` has its own.
    """

    def __init__(self, run, reference, device):
        self._run = run
        self._reference = reference
        self._device = device
        # (low, high) of each output; None before anybody asked.
        self._ends = None
        self.has_picks = True

    def replaced(self, actual, is_judged):
        """`actual` with what the reference has in its place wherever a pick may have made it so;
        None where nothing was, or something is there that no pick makes of it. Outputs for which
        `is_judged(index)` holds stay."""
        found = list(actual)
        for index, (low, high) in enumerate(self._found()):
            y = actual[index].to(low.dtype)
            is_open = _differ(low, high)
            if not is_open.any() or is_judged(index):
                continue
            if is_open.double().mean() > _SMALLER:
                room = _BEYOND * (high.double() - low.double())
                if (is_open & ((y < low - room) | (y > high + room))).any():
                    return None
            is_open &= y.isfinite() | ~(low.isfinite() & high.isfinite())
            found[index] = torch.where(is_open, self._reference[index].to(actual[index]), actual[index])
        is_same = all(mine is its for mine, its in zip(found, actual))
        return None if is_same else found

    def settled(self, outputs):
        """Outputs of an honest run without what picks made of them, which bounds nobody."""
        pairs = zip(outputs, self._reference, self._found())
        return [torch.where(_differ(*ends), r.to(y), y) for y, r, ends in pairs] or outputs

    def _found(self):
        if self._ends is None:
            self._ends = self._find()
        return self._ends

    def _find(self):
        ends = [(r.clone(), r.clone()) for r in self._reference]
        seconds = 0.0
        for number in range(_MOST_RUNS):
            effort = Effort(self._device)
            observer = OtherPicks(number)
            outputs = self._run(observer)
            self.has_picks = observer.has_picked
            if outputs is None or not self.has_picks:
                return []
            for pair, y, reference in zip(ends, outputs, self._reference):
                _widen(*pair, y.to(reference.dtype), reference)
            if not observer.has_ties:
                break
            seconds += effort.seconds
            if seconds > _SECONDS:
                break
        return ends


def _widen(low, high, y, reference):
    """So that both ends have `y` between them."""
    torch.minimum(low, y, out=low)
    torch.maximum(high, y, out=high)
    if y.is_floating_point():
        is_odd = y.isnan() != reference.isnan()
        low.masked_fill_(is_odd, -torch.inf)
        high.masked_fill_(is_odd, torch.inf)


def _differ(low, high):
    if not low.is_floating_point():
        return low != high
    return high - low > _LEAST * torch.maximum(low.abs(), high.abs())
