# SPDX-License-Identifier: Apache-2.0
"""Whether outputs can be judged against strict FP32 where fp64 takes long.

Where PyTorch's own arithmetic is narrower than FP32, as TF32 of convolutions is, a
candidate as good as eager is thousands of FP32 roundings away from the truth, and it does
not matter whether the truth is that of fp64 or of FP32. How far FP32 itself is from the
truth, strict runs show that are disturbed by FP32's rounding: where this is an eighth of
eager's own error or less, in each output and each of its groups, the class's bounds around
strict FP32 admit what those around fp64 do, but for an eighth. A few such runs may have had luck,
and count where they leave so much room that this does not matter. An fp64 convolution takes ten
times as long as all of this.

Only acceptance is found here. What is not within the class is judged against fp64, and so
are all outputs on public inputs.
"""

import dataclasses

from .group_bounds import GroupBounds
from .honest import HonestRuns
from .oracle import Bounds
from .precision import Arithmetic

# How many times eager's own error is that of FP32, at least, by how many runs are known: of each
# disturbance has a least size, so only sums of a few have luck.
_MARGINS = (24.0, 14.0, 10.0, 8.0)
# Error of a group beside its output's largest element that is none.
_NOTHING = 1e-7
# After so many workloads in a row on which FP32 did not stand for the truth, every so many that
# follow are asked.
_FEW, _SELDOM = 2, 4


@dataclasses.dataclass(frozen=True)
class Limits:
    """What bounds outputs against one reference: honest runs, and what follows from them."""

    runs: HonestRuns
    bounds: Bounds
    group_bounds: GroupBounds


class Prospect:
    """Whether it is worth the runs to find out if FP32 stands for the truth on one more workload
    of a problem: where it does not on some, it does so on few."""

    def __init__(self):
        self._failures = 0

    def is_due(self):
        """Asked once for a workload."""
        if self._failures < _FEW:
            return True
        self._failures += 1
        return (self._failures - _FEW) % _SELDOM == 0

    def count(self, is_fine):
        """Tells what was found out."""
        if is_fine:
            self._failures = 0
        elif self._failures < _FEW:
            self._failures += 1


def is_coarsely_within(limits, prospect, found, groups, precision):
    """Whether outputs are surely within a class above STRICT by their errors and groups
    against strict FP32, to which `limits` belong."""
    is_fine = _is_fine(limits.runs)
    prospect.count(is_fine)
    return (
        is_fine
        and all(
            e.tolerance <= limits.bounds.allowed(precision, index, e.tolerance)
            for index, e in enumerate(found)
        )
        and all(
            limits.group_bounds.holds(precision, index, each) for index, each in enumerate(groups)
        )
    )


def _is_fine(runs):
    """Whether FP32 stands for the truth beside eager."""
    narrow = runs.find(Arithmetic.DEFAULT)
    for count, margin in enumerate(_MARGINS, 1):
        worst = narrow and runs.find_orders(count)
        if not worst or not _is_beside(worst, narrow, _MARGINS[-1]):
            return False
        if _is_beside(worst, narrow, margin):
            return True
    return False


def _is_beside(disturbed, narrow, margin):
    """Whether eager is so many times as far away, in each output and group."""
    pairs = zip(disturbed.tolerances, narrow.tolerances)
    return all(margin * fine <= wide for fine, wide in pairs) and all(
        fine is None
        or bool((margin * fine.error <= wide.error.clamp(min=_NOTHING * fine.largest)).all())
        for fine, wide in zip(disturbed.groups, narrow.groups)
    )
