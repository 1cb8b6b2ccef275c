# SPDX-License-Identifier: Apache-2.0
"""What the outputs of one workload must be, and how close to it."""

import contextlib
import math
import time
import weakref

import torch

from .coarse import Limits, is_coarsely_within
from .compare import errors, float_spreads, relative_error, root_mean_squares
from .distribution import NONFINITE
from .group_bounds import GroupBounds
from .groups import measured
from .honest import Honest, HonestRuns, honest
from .oracle import Bounds, kernelbench_tolerance
from .precision import Arithmetic
from .ties import Ties
from .whole_numbers import WholeNumbers
from .workload import total_bytes

# Part of a bound within which strict FP32 tells of fp64; see Expectation.
_KNOWN_PART = 0.75
# Root mean square error that outputs near as a whole may have, how much more than eager's, and
# the most of it on the public inputs, where strict FP32 has less than half as much.
_NEAR_RATIO, _AS_EAGER, _MOST_AWAY = 0.25, 2.0, 0.5


class Expectation:
    """Expected outputs in graph order, their bounds, and eager's own outputs.

    Outputs that agree with strict FP32 to rounding are within the bound of STRICT
    whatever fp64 says: the bound is at least 4 times strict FP32's error e and at
    least a rounding q, and e + 3/4 q is below the larger of the two. So it is for each
    group. The fp64 run is
    therefore made for the first outputs that do not. It is kept as FP32 where
    outputs have 32 or 16 bits: that is a sixteenth of the smallest bound and half the
    memory.
    """

    def __init__(self, judge, key, strict, spreads):
        self.key = key
        self._judge = judge
        self._dtypes = [output.dtype for output in strict]
        self._strict = [_comparable(output) for output in strict]
        self._reference = None
        self._spreads = spreads
        # Without fp64 only the least of them is known.
        own = [0.0] * len(strict)
        self._bounds = Bounds(spreads, self._dtypes, own, _unknown)
        self._group_bounds = GroupBounds(self._dtypes, self._bounds.fixed, _unknown)
        self._eager = None
        self._whole_numbers = None
        self._ties = None
        # `relative_error` of eager's outputs, once it was asked for.
        self._eager_parts = None
        # Whether an output is more than rounding; see `is_told`.
        self._told = [True] * len(strict)
        # Limits against strict FP32, while there is no fp64.
        self._coarse = None
        # What runs took that were made only when they were needed.
        self.later_seconds = 0.0
        if judge.is_default_strict and key.is_unchanged:
            self._eager = strict
        # What stands for the truth: `fp64`, `strict` or `equal`.
        if not any(dtype.is_floating_point for dtype in self._dtypes):
            self.oracle = "equal"
        elif judge.draws_random or key.distribution == NONFINITE:
            self.oracle = "strict"
        else:
            self.oracle = "fp64"

    @property
    def reference(self):
        """Outputs of the oracle."""
        if self._reference is None:
            self._timed(self._find_reference)
        return self._reference

    @property
    def bounds(self):
        """What each class allows against `reference`."""
        if self._reference is None:
            self._timed(self._find_reference)
        return self._bounds

    def outputs(self):
        """What is at hand: the oracle's outputs, or strict FP32's before there are any."""
        return self._reference or self._strict

    @property
    def group_bounds(self):
        """What each class allows the groups of `reference`."""
        if self._reference is None:
            self._timed(self._find_reference)
        return self._group_bounds

    def judge(self, actual, precision):
        """(errors, groups, bounds, group bounds) of the outputs, for a job of that class.

        Against strict FP32 where that is enough to know them within STRICT, or within the
        class because eager itself is far further away; see `coarse`.
        """
        if self._reference is None:
            found, groups = self._compared(actual, self._strict)
            limits = [_KNOWN_PART * self._bounds.rounding(index) for index in range(len(found))]
            if all(e.tolerance <= limit for e, limit in zip(found, limits)):
                holds = self._group_bounds.holds_surely
                if all(holds(index, g, _KNOWN_PART) for index, g in enumerate(groups)):
                    return found, groups, self._bounds, self._group_bounds
            if self._may_be_coarse(found, precision):
                if self._coarse is None:
                    unknown = Honest([0.0] * len(found), [None] * len(found))
                    self._coarse = self._limits(
                        self._strict, self._spreads, unknown, Arithmetic.STRICT
                    )
                prospect = self._judge.prospect
                if is_coarsely_within(self._coarse, prospect, found, groups, precision):
                    return found, groups, self._coarse.bounds, self._coarse.group_bounds
        # Only now, because this finds the other parts, too.
        reference = self.reference
        return *self._compared(actual, reference), self.bounds, self.group_bounds

    def _may_be_coarse(self, found, precision):
        """Whether eager's own arithmetic is narrower than strict FP32, and fp64 is still to
        be run for outputs of which none but FP32 ones differ; never on public inputs."""
        return (
            not self.key.is_public
            and precision != "PRECISION_STRICT"
            and self.oracle == "fp64"
            and not self._judge.is_default_strict
            and all(d == torch.float32 or not e.tolerance for d, e in zip(self._dtypes, found))
            and (self._coarse is not None or self._judge.prospect.is_due())
        )

    def _compared(self, actual, expected):
        """(errors, groups) of the outputs; no groups where each element is close."""
        pairs = list(zip(actual, expected))
        limits = [
            (math.inf, math.inf)
            if spread is None or not spread.is_finite()
            else self._group_bounds.limit(index, r.numel(), spread.largest())
            for index, (r, spread) in enumerate(zip(expected, self._spreads))
        ]
        found = errors(pairs, limits)
        far = [
            spread if e.is_far or spread and not spread.is_finite() else None
            for e, spread in zip(found, self._spreads)
        ]
        return found, measured(pairs, far)

    def _find_reference(self):
        wide = self._judge.wide_outputs(self.key, self._strict) if self.oracle == "fp64" else None
        strict, spreads = None, self._spreads
        if wide:
            spreads = float_spreads(wide)
            strict = honest(self._strict, wide, spreads)
        # Where FP32 overflows and fp64 does not, no FP32 kernel could agree.
        if not strict or not all(t < float("inf") for t in strict.tolerances):
            self.oracle = "equal" if self.oracle == "equal" else "strict"
            wide, spreads = self._strict, self._spreads
            count = len(wide)
            strict = Honest([0.0] * count, [None] * count)
        if self.oracle == "fp64":
            self._told = [_is_told(y, r) for y, r in zip(self._strict, wide)]
        self._judge.return_memory()
        self._reference, self._strict, self._spreads = wide, None, spreads
        oracle = Arithmetic.FP64 if self.oracle == "fp64" else Arithmetic.STRICT
        self._coarse = None
        limits = self._limits(wide, spreads, strict, oracle)
        self._honest, own = limits.runs, weakref.proxy(self)
        self._honest.settle = lambda found: own._asked(lambda ties: ties.settled(found), found)
        self._bounds, self._group_bounds = limits.bounds, limits.group_bounds

    def _limits(self, reference, spreads, strict, oracle):
        """The Limits against a reference, of which strict FP32 is as far as `strict` says."""
        # They are part of it, and in a circle gigabytes would lie until somebody looks for those.
        own = weakref.proxy(self)
        runs = HonestRuns(
            lambda kind, observer: own._judge.honest_outputs(
                own.key, kind, observer, own.outputs() + (own._eager or [])
            ),
            self._judge.device,
            not self._judge.is_default_strict,
            self._dtypes,
            oracle,
            reference,
            spreads,
            strict,
        )
        bounds = Bounds(
            spreads,
            self._dtypes,
            strict.tolerances,
            lambda kind: own._honest_run(runs, kind, runs.tolerances),
            is_changed=not self.key.is_unchanged,
            knows=runs.knows,
        )
        group_bounds = GroupBounds(
            self._dtypes,
            bounds.fixed,
            lambda kind: own._honest_run(runs, kind, runs.groups),
            runs.knows,
        )
        return Limits(runs, bounds, group_bounds)

    def _honest_run(self, runs, kind, part):
        """`part(kind)`, which may take a run of the model."""
        if runs.knows(kind):
            return part(kind)
        found = self._timed(lambda: part(kind))
        self._judge.return_memory()
        return found

    def is_told(self, index):
        """Whether an output is more than what rounding makes of it."""
        return self.reference is not None and self._told[index]

    def is_near(self, index, actual):
        """Whether an output is near the reference as a whole, or as near as eager is with
        PyTorch's defaults: where rounding alone decides much of an output, nobody is nearer."""
        part = relative_error(actual, self.reference[index])
        if part <= _NEAR_RATIO:
            return True
        if self._eager_parts is None:
            kind = Arithmetic.DEFAULT
            made = self._timed(lambda: self._honest.outputs(kind, contextlib.nullcontext()))
            pairs = zip(made or [], self.reference)
            self._eager_parts = [relative_error(y, r) for y, r in pairs]
            self._judge.return_memory()
        most = _AS_EAGER * self._eager_parts[index] if self._eager_parts else 0.0
        # Who is half away on the public inputs may be anybody; others may tell less.
        if self.key.is_public and self.is_told(index):
            most = min(most, _MOST_AWAY)
        return part <= most < math.inf

    def eager(self):
        """Outputs of eager with PyTorch's defaults: what KernelBench compares with."""
        if self._eager is None:
            self._judge.leave_choice()
            inputs = self._judge.workloads.draw(self.key)
            self._eager = self._run(inputs, Arithmetic.DEFAULT)
        return self._eager

    def hold_eager(self, inputs):
        """Computes `eager` from inputs that the caller has drawn."""
        if self._eager is None and self.key.is_unchanged:
            self._judge.leave_choice()
            self._eager = self._run(inputs, Arithmetic.DEFAULT)

    def byte_count(self):
        outputs = self.outputs()
        # Eager may be the same tensors as strict FP32.
        tensors = {id(tensor): tensor for tensor in outputs + (self._eager or [])}
        return total_bytes(tensors.values())

    @property
    def whole_numbers(self):
        """Judges whole-number outputs that differ."""
        if self._whole_numbers is None:
            reference, own = self.reference, weakref.proxy(self)
            self._whole_numbers = WholeNumbers(
                lambda kind, watcher: own._watched_run(kind, watcher),
                reference,
                is_changed=not self.key.is_unchanged,
            )
        return self._whole_numbers

    def with_own_picks(self, actual):
        """`actual` with the reference's elements wherever the pick of another one of equal elements
        may have made it other ones; None where nothing is so."""
        return self._asked(lambda ties: ties.replaced(actual, self.whole_numbers.is_pick), None)

    def _asked(self, ask, otherwise):
        """What `ask` says of the Ties against the oracle, if the model may have some."""
        if not self._judge.may_pick or self._judge.draws_random:
            return otherwise
        if self._ties is None:
            reference, own = self.reference, weakref.proxy(self)
            self._ties = Ties(lambda observer: own._observed(observer), reference, self._judge.device)
        found = ask(self._ties)
        self._judge.may_pick = self._ties.has_picks
        return found

    def _observed(self, observer):
        kind = Arithmetic.FP64 if self.oracle == "fp64" else Arithmetic.STRICT
        outputs = self._timed(lambda: self._honest.outputs(kind, observer))
        self._judge.return_memory()
        return outputs

    def _watched_run(self, kind, watcher):
        # Other random numbers would make other picks.
        if kind == Arithmetic.FP64 and self._judge.draws_random:
            return None
        outputs = self._timed(lambda: self._honest.outputs(kind, watcher))
        self._judge.return_memory()
        return outputs

    def _run(self, inputs, kind):
        return self._judge.execution.run(
            inputs, kind, state=self._judge.execution.state_of(self.key)
        )

    def _timed(self, function):
        start = time.perf_counter()
        try:
            return function()
        finally:
            self.later_seconds += time.perf_counter() - start


def _is_told(strict, wide):
    """Whether FP32 says something of an output: honest programs are up to twice as far away,
    and who is half away may be anybody. Not asked of single numbers, which may be what a sum
    leaves of others, and of what is nothing beside KernelBench's tolerance."""
    if not strict.is_floating_point() or strict.numel() == 1:
        return True
    away, size = root_mean_squares(strict, wide)
    if not away > kernelbench_tolerance(strict.dtype):
        return True
    return away <= _MOST_AWAY / _AS_EAGER * size


def _unknown(*_):
    return None


def _comparable(output):
    return output.float() if output.dtype in (torch.float16, torch.bfloat16) else output
