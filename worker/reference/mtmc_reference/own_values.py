# SPDX-License-Identifier: Apache-2.0
"""Which values of their own the tensors of a model have in which workloads: those that are swept
(`sweeps`), frames, where an operator turns, and one sign where they are factors of what is
searched."""

import torch

from . import distribution, extrema, sweeps
from .landmarks import landmarks

# Distributions whose workloads have values of their own: not where far elements meet the far
# numbers of the second state. Those that take the first ones have zeros, and ordinary inputs.
SWEPT = tuple(
    name
    for name in distribution.DISTRIBUTIONS
    if name not in (*distribution.OF_PARAMETERS, distribution.NONFINITE)
    and name not in (distribution.HEAVY_TAILED, distribution.DIRECTED, distribution.MIXED)
)
_FIRST_SWEPT = (distribution.ROUNDED, distribution.RAMPS)
# Those in which all that a model has has a frame.
_FRAMED = (distribution.CENTERED, distribution.RANGE_ENDS, distribution.TIMES_3, distribution.SPECIAL_ROWS)
# Those that a model has only with some inputs, such as whole numbers.
_RARELY_SWEPT = (distribution.REDRAWN, distribution.EXTREMES)


class OwnValues:
    """Those of `tensors` by target, of which `names` are what the GraphDomain calls them and `uses`
    what it says. Of a model that is not `is_small` only frames: each is one more state to keep."""

    def __init__(self, tensors, names, uses, domain, seed_of, is_small):
        self._tensors, self._names, self._uses = dict(tensors), dict(names), uses
        # Ways to where an operator turns, ways of sweeps.ways, and those of a distribution.
        self._exact = self._find_exact(domain) if is_small else {}
        self._swept = self._find_swept(domain) if is_small else {}
        self._by_distribution = self._find_by_distribution(domain, seed_of)

    def __bool__(self):
        return bool(self._by_distribution)

    def swept(self, target):
        """Ways of sweeps.ways of a tensor."""
        return self._swept.get(target, [])

    def exact(self, target):
        """The way of a tensor to where an operator turns, or None."""
        return self._exact.get(target)

    def of(self, target, name):
        """The way of a tensor in the workloads of a distribution, or None."""
        return self._by_distribution.get(target, {}).get(name)

    def _find_swept(self, domain):
        turns = domain.turns()
        return {
            target: sweeps.ways(tensor, self._uses[target], domain, self._names[target], turns)
            for target, tensor in self._tensors.items()
        }

    def _find_exact(self, domain):
        """Where a branch is taken at one number of a parameter, one in a thousand draws has it."""
        marks = {
            target: [mark for mark in landmarks(domain, self._names[target]) if mark.points]
            for target, tensor in self._tensors.items()
            if tensor.is_floating_point() and not sweeps.is_bound(self._uses[target])
        }
        return {target: sweeps.met(found) for target, found in marks.items() if found}

    def _find_by_distribution(self, domain, seed_of):
        found = {}
        for target, ways in self._swept.items():
            if ways:
                generator = torch.Generator().manual_seed(seed_of(f"sweep {target}"))
                found[target] = _in_turn(ways, generator)
        for target, ways in self._find_frames().items():
            own = found.get(target, {})
            found[target] = ways | {turn: way for turn, way in own.items() if way}
        for target, way in self._exact.items():
            found[target] = found.get(target, {}) | {distribution.ROUNDED: way}
        for target in self._swept:
            if self._is_factor(domain, target):
                # All of an input that is searched is far on one side there.
                way = extrema.one_sided(1)
                found[target] = found.get(target, {}) | dict.fromkeys(distribution.ONE_SIDED, way)
        return found

    def _find_frames(self):
        """By target and distribution the frames of what may have any values."""
        return {
            target: dict(zip(_FRAMED, sweeps.FRAMES))
            for target, tensor in self._tensors.items()
            if sweeps.may_have_frame(tensor, self._uses[target])
        }

    def _is_factor(self, domain, target):
        """Whether a tensor of both signs is a factor of what is searched."""
        tensor = self._tensors[target]
        is_float = tensor.is_floating_point() and tensor.numel() > 1
        return is_float and extrema.is_factor(domain, self._names[target]) and bool(tensor.min() < 0)


def _in_turn(ways, generator):
    """Ways by distribution: the first ones where these belong, the others in any order."""
    fixed = dict(zip(_FIRST_SWEPT, ways))
    rest = ways[len(fixed) :] if len(ways) > len(SWEPT) - len(fixed) else ways
    others = [name for name in SWEPT if name not in (*fixed, *_RARELY_SWEPT)]
    order = torch.randperm(len(others), generator=generator).tolist()
    names = [*(others[place] for place in order), *_RARELY_SWEPT]
    return fixed | {n: rest[at % len(rest)] for at, n in enumerate(names)}
