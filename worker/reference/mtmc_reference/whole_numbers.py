# SPDX-License-Identifier: Apache-2.0
"""Whole-number outputs that differ from the reference, and in which classes they may.

Indices are judged by the fp64 score of what was picked (`picks`). Of other whole numbers
each element must be what some honest run of the class has there, or between what two have:
rounding decides what a comparison of two close numbers says, and how many of them.
"""

import contextlib

import torch

from .compare import float_spreads, spreads, tolerances
from .oracle import PRECISIONS, Bounds
from .picks import Scores
from .precision import Arithmetic

# Arithmetics by class whose whole numbers it admits; each class has those before, too.
_RUNS = {
    "PRECISION_STRICT": (Arithmetic.FP64, Arithmetic.STRICT, Arithmetic.REORDERED),
    "PRECISION_KERNELBENCH": (Arithmetic.DEFAULT, Arithmetic.ROUNDED_CONVOLUTIONS),
    "PRECISION_TF32": (Arithmetic.TF32, Arithmetic.TRUNCATED, Arithmetic.ROUNDED),
    "PRECISION_HALF": (Arithmetic.BF16, Arithmetic.FP16, Arithmetic.ROUNDED_BF16),
}

# Scores that are kept for the next candidate, at most.
_MOST_BYTES = 64 << 20


class WholeNumbers:
    """Judges the whole-number outputs of one workload.

    `run(kind, observer)` gives the outputs of a run in an arithmetic, or None, `reference`
    what is expected. `is_changed` as in `Bounds`.
    """

    def __init__(self, run, reference, is_changed):
        self._run = run
        self._reference = reference
        self._is_changed = is_changed
        # Whole-number outputs by arithmetic.
        self._outputs = {}
        # Scores by arithmetic; None where a run failed.
        self._scores = {}

    def classes(self, index, actual):
        """The classes that admit `actual` as the output at `index`."""
        found = self._classes(index, actual)
        sizes = [scores.byte_count() for scores, _ in filter(None, self._scores.values())]
        if sum(sizes) > _MOST_BYTES:
            self._scores.clear()
        return found

    def is_pick(self, index):
        """Whether an output has the places of what was picked, which are judged by their scores."""
        is_float = self._reference[index].is_floating_point()
        return not is_float and self._picked(index) is not None

    def _classes(self, index, actual):
        picked = self._picked(index)
        if picked is not None:
            return self._classes_of_pick(*picked, actual)
        low = high = self._reference[index].to(actual.device)

        def is_between():
            return bool(((low <= actual) & (actual <= high)).all())

        found = []
        for name in PRECISIONS:
            for kind in _RUNS[name]:
                outputs = None if is_between() else self._whole(kind)
                if outputs:
                    own = outputs[index].to(actual.device)
                    low, high = torch.minimum(low, own), torch.maximum(high, own)
            if is_between():
                found.append(name)
        return found

    def _classes_of_pick(self, pick, positions, number, actual):
        scores = pick.scores
        if not scores.is_floating_point():
            return list(PRECISIONS) if pick.needed(positions, actual, 1.0) == 0.0 else []
        spread = spreads([scores])[0]
        # What is small is compared with its own size.
        size = scores.double().square().mean().sqrt().item() if spread.is_finite() else 1.0
        unit = min(size, 1.0) or 1.0
        # Both what is best and what was picked may have been off.
        needed = pick.needed(positions, actual, unit) / 2
        bounds = Bounds(
            float_spreads([scores / unit]),
            [self._dtype(number)],
            self._own(Arithmetic.STRICT, number, scores, unit) or [0.0],
            lambda kind: self._own(kind, number, scores, unit),
            self._is_changed,
        )
        return [name for name in PRECISIONS if needed <= bounds.allowed(name, 0, needed)]

    def _picked(self, index):
        """(Pick, positions, its number) in fp64 of the output at `index`; None if it is none."""
        found = self._watched(Arithmetic.FP64) or self._watched(Arithmetic.STRICT)
        if not found:
            return None
        scores, outputs = found
        picked = scores.find(outputs[index])
        if picked is None:
            return None
        pick, positions = picked
        number = next(n for n, each in enumerate(scores.picks) if each is pick)
        return pick, positions, number

    def _dtype(self, number):
        found = self._watched(Arithmetic.STRICT)
        return found[0].picks[number].scores.dtype if found else torch.float32

    def _own(self, kind, number, scores, unit):
        """The error of a run's scores; None where it has none."""
        found = self._watched(kind)
        if not found or number >= len(found[0].picks):
            return None
        own = found[0].picks[number].scores
        if own.shape != scores.shape:
            return None
        return tolerances([(own.double() / unit, scores.double() / unit)])

    def _watched(self, kind):
        """(Scores, outputs) of a run; None where it fails."""
        if kind not in self._scores:
            scores = Scores()
            outputs = self._run(kind, scores)
            self._scores[kind] = outputs and (scores, self._kept(outputs))
        return self._scores[kind]

    def _whole(self, kind):
        """Outputs of a run, whole numbers alone; None where it fails."""
        if kind in self._scores:
            found = self._scores[kind]
            return found and found[1]
        if kind not in self._outputs:
            outputs = self._run(kind, contextlib.nullcontext())
            self._outputs[kind] = outputs and self._kept(outputs)
        return self._outputs[kind]

    def _kept(self, outputs):
        return [None if y.is_floating_point() else y for y in outputs]
