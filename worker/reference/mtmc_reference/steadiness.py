# SPDX-License-Identifier: Apache-2.0
"""Whether rounding decides what the reference answers.

Of elements that are all equal a norm divides by a variance of zero. What is left of the
numerator is rounding alone, of which another order of the sums has another, all in one
direction. No FP32 program can be told right from wrong there.
"""

import math

import torch

from .compare import are_finite, chunks, float_spreads, root_mean_squares, tolerances
from .failure import ProblemFailure, is_out_of_memory
from .groups import measured
from .oracle import kernelbench_tolerance
from .picks import Scores
from .precision import Arithmetic
from .rounding import Disturbed, unit_of
from .workload import return_cached_memory

# A workload may magnify rounding by so much more than the public one.
FACTOR = 4.0
# Part of the outputs that rounding may change where they are small.
_MOST_CHANGE = 1e-2
# Part of each row, a quarter of what KERNELBENCH allows one.
MOST_OF_ROW = 2.5e-5


class Steadiness:
    """Compares runs with those whose operators are off by their rounding.

    `run(inputs, observer, state)` makes a strict run, `public_inputs()` gives those. Honest
    programs may round to `unit` of 1 where that is more than their type does.
    """

    def __init__(self, run, public_inputs, unit=0.0):
        self._unit = unit
        self._run = run
        self._public_inputs = public_inputs
        self._kept = None, {}
        self._public = None
        self._public_changed = None
        # Outputs that are indices of what was picked.
        self._picked = None
        self._public_part = None

    def holds(self, inputs, state, outputs):
        """Whether `outputs`, of a strict run in `state`, hardly depend on rounding: not where
        the reference refuses what rounding makes of its values. True where memory does not
        suffice to know."""
        return self._guarded(lambda: self._holds(inputs, state, outputs))

    def holds_by_rows(self, inputs, state, outputs):
        """Whether each row and each channel of `outputs` hardly depends on rounding as a whole."""
        return self._guarded(lambda: self._holds_by_rows(inputs, state, outputs))

    def is_telling(self, inputs, state, outputs):
        """Whether rounding changes little of `outputs`, however small they are; not where all
        of one are zero and those of the public inputs are not."""
        return self._guarded(lambda: self._is_telling(inputs, state, outputs, False))

    def is_both(self, inputs, state, outputs):
        """Whether they hold and are telling; also where all are zero and rounding changes nothing."""

        def ask():
            holds = self._holds(inputs, state, outputs)
            return holds and self._is_telling(inputs, state, outputs, True)

        # The inputs and what rounding makes of them, by its unit.
        self._kept = inputs, {}
        try:
            return self._guarded(ask)
        finally:
            self._kept = None, {}

    def _disturbed(self, inputs, unit, state):
        own, kept = self._kept
        if own is not inputs:
            return self._run(inputs, Disturbed(unit), state)
        if unit not in kept:
            # Of a large model there is no room for two.
            kept.clear()
            kept[unit] = self._run(inputs, Disturbed(unit), state)
        return kept[unit]

    def _guarded(self, ask):
        try:
            return ask()
        except (ProblemFailure, RuntimeError, MemoryError) as error:
            if not is_out_of_memory(getattr(error, "cause", None) or error):
                if isinstance(error, ProblemFailure):
                    return False
                raise
        return_cached_memory()
        return True

    def _holds(self, inputs, state, outputs):
        return self._floats_hold(inputs, state, outputs) and self._wholes_hold(inputs, state, outputs)

    def _floats_hold(self, inputs, state, outputs):
        floats = [index for index, y in enumerate(outputs) if y.is_floating_point()]
        if not floats:
            return True
        found = self._change(inputs, state, outputs, floats)
        limits = [kernelbench_tolerance(outputs[index].dtype) for index in floats]
        if all(t <= most for t, most in zip(found, limits)):
            return True
        if self._public is None:
            public = self._public_inputs()
            self._public = self._change(public, None, self._run(public, None, None), floats)
        return all(t <= max(most, FACTOR * p) for t, most, p in zip(found, limits, self._public))

    def _wholes_hold(self, inputs, state, outputs):
        """Whether rounding changes few whole numbers, such as counts of what is larger than another:
        honest programs come to more different ones than a few runs show."""
        wholes = self._counts(outputs)
        if not wholes:
            return True
        found = self._changed_parts(inputs, state, outputs, wholes)
        if all(part <= _MOST_CHANGE for part in found):
            return True
        if self._public_changed is None:
            public = self._public_inputs()
            own = self._run(public, None, None)
            self._public_changed = self._changed_parts(public, None, own, wholes)
        return all(
            part <= max(_MOST_CHANGE, FACTOR * usual)
            for part, usual in zip(found, self._public_changed)
        )

    def _counts(self, outputs):
        """Whole numbers that are no indices of what was picked: those are judged by its score."""
        wholes = [index for index, y in enumerate(outputs) if not y.is_floating_point() and y.numel()]
        if wholes and self._picked is None:
            scores = Scores()
            own = self._run(self._public_inputs(), scores, None)
            self._picked = {index for index in wholes if scores.find(own[index]) is not None}
        return [index for index in wholes if index not in self._picked]

    def _changed_parts(self, inputs, state, outputs, wholes):
        units = [unit_of(y.dtype) for y in outputs if y.is_floating_point()]
        unit = max([self._unit, *units]) if units or self._unit else unit_of(torch.float32)
        disturbed = self._disturbed(inputs, unit, state)
        return [(disturbed[i] != outputs[i]).double().mean().item() for i in wholes]

    def _holds_by_rows(self, inputs, state, outputs):
        floats = [index for index, y in enumerate(outputs) if y.is_floating_point()]
        unit = max([self._unit, *(unit_of(outputs[index].dtype) for index in floats)])
        disturbed = self._disturbed(inputs, unit, state)
        spreads = float_spreads([outputs[index] for index in floats])
        pairs = [(disturbed[index], outputs[index]) for index in floats]
        return all(_is_steady_by_rows(each) for each in measured(pairs, spreads) if each)

    def _is_telling(self, inputs, state, outputs, may_be_zero):
        floats = [index for index, y in enumerate(outputs) if y.is_floating_point()]
        found = self._part(inputs, state, outputs, floats, may_be_zero)
        if all(part <= _MOST_CHANGE for part in found):
            return True
        if self._public_part is None:
            public = self._public_inputs()
            self._public_part = self._part(public, None, self._run(public, None, None), floats)
        return all(
            part <= max(_MOST_CHANGE, FACTOR * usual)
            for part, usual in zip(found, self._public_part)
        )

    def _part(self, inputs, state, outputs, floats, may_be_zero=False):
        """Root mean squares of the change over those of the outputs; infinite where all are 0."""
        unit = max([self._unit, *(unit_of(outputs[index].dtype) for index in floats)])
        disturbed = self._disturbed(inputs, unit, state) if floats else ()
        return [_part(disturbed[index], outputs[index], may_be_zero) for index in floats]

    def _change(self, inputs, state, outputs, floats):
        unit = max(unit_of(outputs[index].dtype) for index in floats)
        disturbed = self._disturbed(inputs, unit, state)
        pairs = [(disturbed[index], outputs[index]) for index in floats]
        finite = [(_finite(y, z), z) for y, z in pairs]
        return tolerances(finite)


def _is_steady_by_rows(groups):
    count = groups.layout.rows + groups.layout.channels
    return bool((groups.error[:count] <= MOST_OF_ROW * groups.size[:count]).all())


def _finite(disturbed, output):
    """What is not finite in both runs says nothing."""
    if are_finite(output):
        return disturbed
    return torch.where(output.isfinite(), disturbed, output)


def _part(disturbed, output, may_be_zero):
    change, size = root_mean_squares(disturbed, output)
    if not math.isfinite(change + size):
        change, size = _finite_norms(disturbed, output)
    if not size:
        # Where masks leave nothing at all, that is the answer.
        is_nothing = not output.isfinite().any()
        return 0.0 if is_nothing or may_be_zero and not change else math.inf
    return change / size


def _finite_norms(disturbed, output):
    """Of the change and of the output, in which what is not finite counts as zero."""
    size = change = 0.0
    # Piece by piece: of eight gigabytes fp64 takes sixteen, four times over.
    for _, y, r in chunks(disturbed, output):
        r = torch.nan_to_num(r.double(), posinf=0.0, neginf=0.0)
        size = math.hypot(size, r.norm().item())
        change = math.hypot(change, torch.nan_to_num(y.double() - r).norm().item())
    return change, size
