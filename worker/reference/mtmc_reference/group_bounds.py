# SPDX-License-Identifier: Apache-2.0
"""The root mean square of the error that each precision class allows a group of an output.

A class allows each group the largest of

    ratio     a part of the group's own root mean square
    honest    a multiple of what honest runs of the class have in this group; the loosest
              group bounds only itself
    floor     roundings at the scale of the output, which elements far below it may drown in

Ratios of FP32 outputs, by class 1e-5, 1e-4, 1e-3, 3e-2. An operator in FP32 is off by 1e-7
of a group, with fast intrinsics (2 to 100 units in the last place) by up to 1e-5. A product
whose operands have TF32's or FP16's 11 bits is off by 2^-11 / sqrt(3) * 0.7 = 2e-4 for each
of them, with bf16's 8 bits by 1.6e-3: each class refuses the next one's operands wherever
signs mix, and leaves room for some errors of its own in a row. What stays 16 bits wide is
off by half a unit as it is stored, so it has at least four halves. What sums cancel is not
in the ratios: it is what honest runs are for, which are made when a group is beyond all else.

An output of few elements has each of them as a group, and the tolerance of the class as
ratio: a loss is bounded by its own size.
"""

import dataclasses
import math

import torch

from .layout import SMALL
from .precision import Arithmetic

_RATIOS = {
    "PRECISION_STRICT": 1e-5,
    "PRECISION_KERNELBENCH": 1e-4,
    "PRECISION_TF32": 1e-3,
    "PRECISION_HALF": 3e-2,
}
# Of float64, in the classes in which no narrower type may compute it.
_DOUBLE_RATIOS = {"PRECISION_STRICT": 1e-9, "PRECISION_KERNELBENCH": 1e-8}
# Units in the last place that a 16-bit output has as ratio, at least.
_UNITS = 2.0
# Honest runs by class, with the multiple of their error; each class has those before, too.
# A run in another order is drawn with at least two deviations, and strict FP32's own may
# have had luck. Above STRICT an operator may be off by several units, and what cancels
# multiplies those. One run in low precision is one sample, and a poor one of a row in which
# one sum decides all elements, or of a channel of heavy tails: of a group of which eight
# elements count, one of 3000 has four times the error of another run. Operands that are cut
# off err twice as much.
_HONEST = {
    "PRECISION_STRICT": ((Arithmetic.STRICT, 4.0), (Arithmetic.REORDERED, 4.0)),
    "PRECISION_KERNELBENCH": (
        (Arithmetic.DEFAULT, 4.0),
        (Arithmetic.REORDERED, 8.0),
        (Arithmetic.ROUNDED_CONVOLUTIONS, 4.0),
    ),
    "PRECISION_TF32": (
        (Arithmetic.TF32, 4.0),
        (Arithmetic.TRUNCATED, 2.0),
        (Arithmetic.ROUNDED, 4.0),
    ),
    "PRECISION_HALF": (
        (Arithmetic.BF16, 4.0),
        (Arithmetic.FP16, 4.0),
        (Arithmetic.ROUNDED_BF16, 4.0),
    ),
}
# Roundings at the scale of the output that the floor is made of.
_FLOOR = {torch.float64: 1e-12}
_USUAL_FLOOR = 1e-6
# Above STRICT, what an output is computed from may be of size 1 where the output is not:
# exp(x) - 1 of small x.
_FLOOR_FACTOR = 1.5
# Then it is at most so many roundings of the output's root mean square.
_FLOOR_PART = 1e2
# Behind the name of a group whose elements are all zero in the reference: what is needed and
# allowed there are root mean squares themselves.
ZERO = ", which is zero in the reference"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The group of an output that is furthest beyond its bound, or closest to it."""

    part: str = ""
    # Root mean square of the error over that of the reference, and the largest allowed.
    needed: float = 0.0
    allowed: float = 0.0
    # The error over what is allowed.
    excess: float = 0.0


class GroupBounds:
    """What each class allows the groups of the outputs of one workload.

    `tolerance(precision, index)` is the class's fixed tolerance of an output, and
    `honest(kind)` the Groups of an honest run, by output, or None; `knows(kind)` tells whether
    that takes no run.
    """

    def __init__(self, dtypes, tolerance, honest, knows=lambda kind: True):
        self._dtypes = dtypes
        self._tolerance = tolerance
        self._honest = honest
        self._knows = knows

    def holds(self, precision, index, groups, may_run=True):
        """Whether the class allows every group of an output its error; as far as that is known
        without another run, unless one may be made."""
        if groups is None:
            return True
        allowed = self._widened(precision, index, groups, precision, may_run)
        return bool((groups.error <= allowed).all())

    def holds_surely(self, index, groups, part):
        """Whether STRICT holds by that part of its ratios and floors alone."""
        if groups is None:
            return True
        limit = part * self._fixed("PRECISION_STRICT", index, groups)
        return bool((groups.error <= limit).all())

    def limit(self, index, count, largest):
        """(ratio, floor): where no element is further away than both of its reference, every
        group holds in STRICT, and surely so. Half of what STRICT allows a group, whose square
        is at most the sum of those of both."""
        dtype = self._dtypes[index]
        if not dtype.is_floating_point:
            return math.inf, math.inf
        ratio = self._ratio("PRECISION_STRICT", index, count <= SMALL)
        return ratio / 2, self._unit("PRECISION_STRICT", dtype) * min(largest, 1.0) / 2

    def verdict(self, precision, index, groups):
        """The Verdict on one output, whose Groups may be None."""
        if groups is None:
            return Verdict()
        return self._verdict(groups, self._allowed(precision, index, groups))

    def _verdict(self, groups, allowed):
        tiny = torch.finfo(torch.float64).tiny
        excess = groups.error / allowed.clamp(min=tiny)
        worst = int(excess.argmax())
        size, part = groups.size[worst].item(), groups.name(worst)
        if size < tiny:
            size, part = 1.0, part + ZERO
        return Verdict(
            part,
            groups.error[worst].item() / size,
            allowed[worst].item() / size,
            excess[worst].item(),
        )

    def repeats(self, precision, index, groups):
        """The Verdict on the Groups of one run against another of the same program, whose
        elements stand for the reference.

        Each is compared with the reference, too. Beyond the ratio of KERNELBENCH they may
        differ as honest runs of the class do: a lost update may be small beside the ratio
        of HALF.
        """
        if groups is None:
            return Verdict()
        fixed = precision if precision in _DOUBLE_RATIOS else "PRECISION_KERNELBENCH"
        allowed = self._widened(precision, index, groups, fixed)
        return self._verdict(groups, allowed)

    def _allowed(self, precision, index, groups):
        return self._widened(precision, index, groups, precision)

    def _widened(self, precision, index, groups, fixed, may_run=True):
        """What the class `fixed` allows by its ratio and floor, and honest runs of the class
        `precision`, as far as these have to be asked."""
        allowed = self._fixed(fixed, index, groups)
        for kind, factor in self._runs(precision):
            if (groups.error <= allowed).all():
                return allowed
            if not (may_run or self._knows(kind)):
                continue
            honest = self._honest(kind)
            if honest and honest[index] is not None:
                error = torch.nan_to_num(honest[index].error, posinf=0.0)
                allowed = torch.maximum(allowed, factor * error)
        return allowed

    def _runs(self, precision):
        """Those of the class and of the ones before it, with their multiples: what takes no run
        first, and a run in another order, which costs most, at last."""
        names = list(_HONEST)
        runs = [run for name in names[: names.index(precision) + 1] for run in _HONEST[name]]
        return sorted(
            runs, key=lambda run: (not self._knows(run[0]), run[0] == Arithmetic.REORDERED)
        )

    def _fixed(self, precision, index, groups):
        ratio = self._ratio(precision, index, groups.layout.is_small)
        floor = self._floor(precision, self._dtypes[index], groups)
        return (ratio * groups.size).clamp_(min=floor)

    def _ratio(self, precision, index, is_small):
        dtype = self._dtypes[index]
        if is_small:
            return self._tolerance(precision, index)
        if dtype == torch.float64:
            return _DOUBLE_RATIOS.get(precision, _RATIOS[precision])
        if dtype.itemsize == 2:
            return max(_RATIOS[precision], _UNITS * torch.finfo(dtype).eps)
        return _RATIOS[precision]

    def _unit(self, precision, dtype):
        is_narrow = precision not in _DOUBLE_RATIOS
        return _USUAL_FLOOR if is_narrow else _FLOOR.get(dtype, _USUAL_FLOOR)

    def _floor(self, precision, dtype, groups):
        unit = self._unit(precision, dtype)
        largest, scale = groups.largest, max(groups.scale, 1.0)
        floor = unit * min(largest, scale)
        if precision != "PRECISION_STRICT" and not groups.layout.is_small:
            floor = max(floor, min(_FLOOR_FACTOR * unit * scale, _FLOOR_PART * unit * groups.scale))
        if not largest:
            floor = unit
        return max(floor, torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps)

