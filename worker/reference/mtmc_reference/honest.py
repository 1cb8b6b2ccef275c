# SPDX-License-Identifier: Apache-2.0
"""How far honest runs of one workload are from its oracle: by output, and by group."""

import contextlib
import dataclasses
import math

import torch

from .compare import are_finite, tolerances
from .effort import Effort
from .groups import measured
from .precision import Arithmetic, distinct
from .rounding import Disturbed, unit_of
from .tensor_core import NarrowOperands, as_bf16, rounded, truncated


_BROUGHT = {
    Arithmetic.TRUNCATED: truncated,
    Arithmetic.ROUNDED: rounded,
    Arithmetic.ROUNDED_BF16: as_bf16,
}
# One run may have had luck in a row or a channel: each counts for at least the ratio of
# error and size that so many of them stay below.
_TYPICAL = 0.9
# Of an output of few elements each is a group: at least so many of them tell what is usual,
# which is so many times the error in the middle, for an element that is not so many times
# smaller than the output.
_ENOUGH, _USUAL, _LIKE = 8, 2.0, 64.0
# Where few roundings decide all of an output, as in a recursion near the unit circle, one run in
# another order may have had luck as a whole, in all groups at once. The worst of so many counts,
# the later ones if those before took no more than so many seconds.
_MOST_ORDERS, _ORDER_SECONDS = 4, 1.0


@dataclasses.dataclass(frozen=True)
class Honest:
    """The errors of one run: a tolerance and Groups for each output."""

    tolerances: list
    # None for what is not floating-point.
    groups: list


def honest(outputs, reference, spreads):
    """The Honest of `outputs`; `spreads` are those of the reference."""
    pairs = list(zip(outputs, reference))
    groups = measured(pairs, spreads)
    for each in groups:
        if each is None:
            continue
        if each.layout.is_small:
            _without_luck_of_elements(each)
        else:
            _without_luck(each)
    return Honest(tolerances(pairs), groups)


def _without_luck(groups):
    rows, channels = groups.layout.rows, groups.layout.channels
    for part in (slice(0, rows), slice(rows, rows + channels)):
        error, size = groups.error[part], groups.size[part]
        ratios = (error / size)[(size > 0) & error.isfinite()]
        if len(ratios) > 1:
            rank = math.ceil(_TYPICAL * len(ratios))
            error.copy_(torch.maximum(error, ratios.kthvalue(rank).values * size))


def _without_luck_of_elements(groups):
    """One element's error is one number, which may be anything: those of its like tell what is
    usual. An element that is far smaller than the output is not of their like, as it is
    bounded relative to itself."""
    if groups.error.numel() >= _ENOUGH and groups.scale > 0:
        likeness = (_LIKE * groups.size / groups.scale).clamp(max=1.0)
        usual = _USUAL * groups.error.nan_to_num(posinf=0.0).median()
        torch.maximum(groups.error, usual * likeness, out=groups.error)


class HonestRuns:
    """The runs of one workload, each made when it is first asked for.

    `run(kind, observer)` gives the outputs of a run, or None where it fails. `strict` is the
    Honest of strict FP32, and `oracle` the arithmetic of the reference. Whether PyTorch's
    defaults may compute a part of the model in TF32, `may_use_tf32` tells.
    """

    def __init__(self, run, device, may_use_tf32, dtypes, oracle, reference, spreads, strict):
        self._run = run
        # Takes from outputs what the pick of one of equal elements has made of them.
        self.settle = lambda outputs: outputs
        self._device = device
        self._may_use_tf32 = may_use_tf32
        self._dtypes = dtypes
        self._oracle = oracle
        self._reference = reference
        self._spreads = spreads
        # None where a run failed, or says nothing that another one does not.
        self._found = {Arithmetic.STRICT: strict}
        # The worst of the runs in another order, how many these are, and what they took.
        self._worst, self._orders, self._order_seconds = None, 0, 0.0

    def find(self, kind):
        """The Honest of the arithmetic `kind`; None where there is none."""
        if kind not in self._found:
            self._found[kind] = self._made(kind)
        return self._found[kind]

    def find_orders(self, count):
        """The Honest of so many runs in another order, of fewer where these take long, or of more
        if they are made: few may have had luck. None where there is none."""
        if self.knows(Arithmetic.REORDERED):
            return self.find(Arithmetic.REORDERED)
        while self._orders < count:
            if self._orders and (self._worst is None or self._order_seconds > _ORDER_SECONDS):
                break
            effort = Effort(self._device)
            found = self._in_order(self._orders)
            self._worst = _worse(self._worst, found) if self._orders else found
            self._orders += 1
            self._order_seconds += effort.seconds
        return self._worst

    def knows(self, kind):
        """Whether `find` takes no run."""
        return kind in self._found

    def tolerances(self, kind):
        found = self.find(kind)
        return found and found.tolerances

    def groups(self, kind):
        found = self.find(kind)
        return found and found.groups

    def outputs(self, kind, watcher):
        """Outputs of a run, which `watcher`, a context, is entered around; None where there
        is none."""
        if kind == Arithmetic.REORDERED:
            units = self._units() or [unit_of(torch.float32)]
            return self._run(self._oracle, _Both(watcher, Disturbed(units[-1])))
        is_known = kind in (Arithmetic.FP64, Arithmetic.STRICT)
        if kind in _BROUGHT:
            return self._run(Arithmetic.STRICT, _Both(watcher, NarrowOperands(_BROUGHT[kind])))
        if kind == Arithmetic.ROUNDED_CONVOLUTIONS:
            if not self._may_use_tf32:
                return None
            observer = NarrowOperands(rounded, is_of_convolutions=True)
            return self._run(Arithmetic.STRICT, _Both(watcher, observer))
        return self._run(kind, watcher) if is_known or kind in distinct(self._device) else None

    def _made(self, kind):
        if kind == Arithmetic.REORDERED:
            return self.find_orders(_MOST_ORDERS)
        return self._judged(self.outputs(kind, contextlib.nullcontext()))

    def _judged(self, outputs):
        return outputs and honest(self.settle(outputs), self._reference, self._spreads)

    def _units(self):
        return sorted({unit_of(t) for t in self._dtypes if t.is_floating_point})

    def _in_order(self, number):
        """Each output as disturbed by the rounding of its own type."""
        units = self._units()
        runs = {unit: self._judged(self._disturbed(unit, number)) for unit in units}
        if not runs or not all(runs.values()):
            return None
        chosen = [runs[unit_of(t) if t.is_floating_point else units[0]] for t in self._dtypes]
        return Honest(
            [run.tolerances[index] for index, run in enumerate(chosen)],
            [run.groups[index] for index, run in enumerate(chosen)],
        )

    def _disturbed(self, unit, number):
        """Outputs of the oracle under rounding; what it makes overflow says nothing."""
        outputs = self._run(self._oracle, Disturbed(unit, number))
        pairs = zip(outputs or [], self._reference)
        return [_finite(y, r) if y.is_floating_point() else y for y, r in pairs]


def _worse(one, other):
    """The larger errors of two runs, as far as they are finite."""
    if other is None:
        return one
    for mine, its in zip(one.groups, other.groups):
        if mine is not None:
            found = [groups.error.nan_to_num(posinf=0.0) for groups in (mine, its)]
            mine.error.copy_(torch.maximum(*found))
    pairs = zip(one.tolerances, other.tolerances)
    finite = [[t for t in pair if math.isfinite(t)] for pair in pairs]
    return Honest([max(each, default=math.inf) for each in finite], one.groups)


def _finite(disturbed, reference):
    if are_finite(disturbed):
        return disturbed
    return torch.where(disturbed.isfinite(), disturbed, reference)


class _Both:
    """Enters both; the watcher sees what the observer makes of an operator.

    May be entered again: a run for which memory ran out is made once more.
    """

    def __init__(self, watcher, observer):
        self._contexts = (observer, watcher)
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            for context in self._contexts:
                stack.enter_context(context)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)
