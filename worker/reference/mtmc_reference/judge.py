# SPDX-License-Identifier: Apache-2.0
"""Runs the reference on the inputs of a workload, and says where it is not defined."""

import functools
import gc
import math

import torch

from . import choices
from .coarse import Prospect
from .compare import float_spreads
from .directed import Director
from .distribution import DELICATE, HEAVY_TAILED, LEVEL, MIXED, NONFINITE
from .expectation import Expectation
from .failure import Dropped, ProblemFailure, is_out_of_memory
from .parameters import ZERO
from .parked import parked
from .peril import MOST_DEADLY
from .precision import Arithmetic
from .steadiness import Steadiness
from .workload import PUBLIC, free_bytes, total_bytes

# What may be spent on all workloads that are mixed: a large or slow model has fewer of them. Each
# finds about as many mistakes as the one before, and 35 of a small model take a second.
_MIXED_SECONDS = 3.0
# The same for those that are made for one program.
_OWN_SECONDS = 0.5
# Half a unit in the last place of TF32, which cuDNN may choose.
_TF32_UNIT = 2.0**-11
# Arithmetics in which a library chooses by the memory that is free. It chooses once for both, and
# stays with that: one run beside a full device would make all later ones others than eager's.
_CHOOSING = (Arithmetic.DEFAULT, Arithmetic.TF32)


class Judge:
    """Computes expectations of one problem on one device."""

    def __init__(self, execution, workloads, device, draws_random, is_default_strict):
        self.execution = execution
        self.workloads = workloads
        self.device = device
        # Whether PyTorch's defaults compute the model as strict FP32 does.
        self.is_default_strict = is_default_strict
        # Of what coarse.py asks.
        self.prospect = Prospect()
        # Called with the bytes that a run needs and that are not free.
        self.make_room = lambda need: None
        # Bytes that should be free for a run of eager, so that its libraries choose as they do
        # for a user who has the device alone.
        self.choice_bytes = 0
        # Called after runs whose memory no other process has counted on.
        self.return_memory = lambda: None
        # Whether the model may pick of equal elements, until a run shows that it picks nothing.
        self.may_pick = True
        # A dropout mask drawn for fp64 is another one: compare like with like.
        self.draws_random = draws_random
        unit = 0.0 if is_default_strict else _TF32_UNIT
        self._steadiness = Steadiness(self._steady_run, lambda: workloads.draw(PUBLIC), unit)
        # Keys on whose inputs it is known that rounding decides little.
        self._steady = set()
        self._mixed_seconds = _MIXED_SECONDS
        # For the salt of the last program.
        self._own_salt, self._own_seconds = 0, _OWN_SECONDS
        # Peril in which inputs run that the model may not be made for.
        self.peril = None
        # Outputs whose public values are all finite; None before those are known.
        self._finite_outputs = None

    def strict_outputs(self, key, inputs):
        """Outputs of strict FP32; raises Dropped where the reference is not defined."""
        return self._strict_run(key, inputs)[0]

    def _steady_run(self, inputs, observer, state):
        return self.execution.run(inputs, Arithmetic.STRICT, observer, state=state)

    def is_defined_in(self, inputs, state, is_steady):
        """Whether the reference is defined on public inputs in another state, and rounding
        decides little where it `is_steady`."""

        def run():
            outputs = self.execution.run(inputs, Arithmetic.STRICT, state=state)
            if is_steady and not self._is_steady(inputs, state, outputs):
                raise Dropped("rounding alone decides what the reference answers there")
            return outputs

        try:
            outputs = self.peril.run(f"state {state}", _never, run) if self.peril else run()
        except Dropped:
            return False
        except ProblemFailure as failure:
            if is_out_of_memory(failure.cause):
                raise
            return False
        found = float_spreads(outputs)
        return all(
            not want or spread is None or spread.is_finite()
            for want, spread in zip(self._finite_outputs, found)
        )

    def _is_steady(self, inputs, state, outputs):
        """Whether rounding decides little; where divisors are minute, that of TF32 counts, too."""
        if not self._holds(inputs, state, outputs):
            return False
        return state != ZERO or self._steadiness.is_telling(inputs, state, outputs)

    def _holds(self, inputs, state, outputs):
        """Whether rounding decides little. What is divided by minute numbers is large, so that
        some elements are small beside others of their row."""
        if self._steadiness.holds(inputs, state, outputs):
            return True
        return state == ZERO and self._steadiness.holds_by_rows(inputs, state, outputs)

    def direct(self, key, inputs, indices, level, seed):
        """Moves inputs of a directed workload, in place; raises Dropped."""

        def run(inputs, observer, state, has_gradients):
            return self.execution.run(
                inputs, Arithmetic.STRICT, observer, state=state, has_gradients=has_gradients
            )

        def move():
            Director(run).move(inputs, indices, level, seed, self.execution.state_of(key))

        what = f"search {key.distribution} {level}"
        self.peril.run(what, lambda: True, move) if self.peril else move()

    def _accepts(self, key, levels):
        """Whether the reference is defined on `key` with other levels of its distribution."""
        try:
            self._strict_run(key, self.workloads.draw_at(key, levels), levels)
        except Dropped:
            return False
        return True

    def settle(self, key):
        """Finds out which state of the model a mixed workload has; raises Dropped where too much
        time went by for others."""
        if key.distribution != MIXED or key in self._steady:
            return
        if key.salt and key.salt != self._own_salt:
            self._own_salt, self._own_seconds = key.salt, _OWN_SECONDS
        if self._is_late(key):
            raise Dropped("the model takes too long to mix more")
        public = self.workloads.draw(PUBLIC)
        accepts = functools.partial(self.is_defined_in, public)
        self.execution.settle(key, accepts, lambda: self._bears(key))

    def _bears(self, key):
        """Whether the reference is defined on a workload as it is."""
        try:
            self._strict_run(key, self.workloads.draw(key))
        except Dropped:
            return False
        return True

    def count(self, key, seconds):
        """Tells what a workload took, from its draw to its expectation."""
        if key.distribution != MIXED:
            return
        if key.salt:
            self._own_seconds -= seconds
        else:
            self._mixed_seconds -= seconds

    def _is_late(self, key):
        return (self._own_seconds if key.salt else self._mixed_seconds) <= 0

    def soften(self, key, reason):
        """Goes on with milder values of the model in the workload `key`, or a milder form of its
        distribution, after the reference was not defined; false where there is none."""
        if self.execution.calm(key):
            return True
        if key.distribution == MIXED and self._is_late(key):
            return False
        return self.workloads.soften(key, reason, lambda levels: self._accepts(key, levels))

    def _attempted(self, key, inputs, levels):
        """A strict run that may end the process; raises Dropped where it did."""

        def run():
            return self.execution.run(inputs, Arithmetic.STRICT, state=self.execution.state_of(key))

        if key.is_unchanged or self.peril is None:
            return run()
        if levels is None:
            levels = self.workloads.levels(key.recipe)
        what = f"{key.recipe} {sorted(levels.items())}"
        # There are many mixtures: none is worth a second death.
        most = 1 if key.distribution == MIXED else MOST_DEADLY
        return self.peril.run(what, lambda: self.workloads.leave_range(inputs), run, most)

    def _strict_run(self, key, inputs, levels=None):
        """`strict_outputs`, and the Spread of each that has floating-point elements, or None."""
        try:
            outputs = self._attempted(key, inputs, levels)
        except ProblemFailure as failure:
            if key.is_unchanged or is_out_of_memory(failure.cause):
                raise
            raise Dropped(failure.message) from failure
        found = float_spreads(outputs)
        finite = [spread is None or spread.is_finite() for spread in found]
        if key.is_public:
            self._finite_outputs = finite
        elif not key.is_unchanged and key.distribution != NONFINITE and any(
            want and not have for want, have in zip(self._finite_outputs, finite)
        ) and not self._are_chosen(key, levels, outputs):
            raise Dropped("the reference is not finite there")
        if key not in self._steady:
            self._require_steady(key, inputs, outputs, levels)
            if levels is None and not key.salt:
                self._steady.add(key)
        return outputs, found

    def _require_steady(self, key, inputs, outputs, levels):
        if key.distribution == MIXED:
            if not self._asked(self._steadiness.is_both, key, inputs, outputs):
                raise Dropped("rounding alone decides what the reference answers there")
            return
        if key.distribution in LEVEL or self.execution.is_special(key):
            if not self._asked(self._holds, key, inputs, outputs):
                raise Dropped("rounding alone decides what the reference answers there")
        if self._is_delicate(key, levels):
            is_far = key.distribution == HEAVY_TAILED
            question = self._steadiness.holds if is_far else self._steadiness.is_telling
            if not self._asked(question, key, inputs, outputs):
                raise Dropped("the reference answers zeros or rounding there")

    def _are_chosen(self, key, levels, outputs):
        def run(inputs, levels):
            return self._attempted(key, inputs, levels)

        try:
            if choices.decide(self.workloads, key, levels, outputs, run):
                return True
            public = self.workloads.draw_own(PUBLIC)
            return choices.decide_states(self.execution, key, public, outputs)
        except ProblemFailure as failure:
            if is_out_of_memory(failure.cause):
                raise
            return False

    def _is_delicate(self, key, levels):
        # What softer ways there are is learned on the workloads that are remembered.
        if key.distribution not in DELICATE or key.salt:
            return False
        if levels is None:
            levels = self.workloads.levels(key.recipe)
        return self.workloads.is_delicate(key.recipe, levels)

    def _asked(self, question, key, inputs, outputs):
        def holds():
            return question(inputs, self.execution.state_of(key), outputs)

        # A device has no way to refuse a value but an assertion.
        return self.peril.run(f"steady {key.recipe}", _never, holds) if self.peril else holds()

    def leave_choice(self):
        """Before a run of eager with PyTorch's defaults: leaves it room to choose algorithms in."""
        if self.choice_bytes > free_bytes(self.device):
            self.make_room(self.choice_bytes)

    def expectation(self, key, inputs):
        """The Expectation of `key`, whose inputs are given; raises Dropped."""
        return Expectation(self, key, *self._strict_run(key, inputs))

    def wide_outputs(self, key, strict):
        """Outputs of fp64, rounded to what is compared; None where it is not possible."""
        need = 6 * self.workloads.byte_count() + 4 * total_bytes(strict)
        if not self.draws_random and need > free_bytes(self.device):
            self.make_room(need)
        if self.draws_random or need > free_bytes(self.device):
            return None
        # Only now, because what makes room may free inputs that are kept.
        inputs = self.workloads.draw(key)
        try:
            wide = self.execution.run(inputs, Arithmetic.FP64, state=self.execution.state_of(key))
        except ProblemFailure as failure:
            # Out of memory, or types that a file fixes to FP32 in `forward`.
            if is_out_of_memory(failure.cause):
                _return_memory(self.device)
            return None
        return [_rounded(w, s) for w, s in zip(wide, strict)]

    def honest_outputs(self, key, kind, observer, held=()):
        """Outputs of a run in the arithmetic `kind`; None where it fails, or where memory does
        not suffice though all that can be made again was given back and, at last, what is `held`
        of the expectation lay on the host, to which gigabytes take seconds: a bound that lacks
        such a run may refuse honest programs, eager's own calls among them."""
        if kind in _CHOOSING:
            self.leave_choice()
        for is_again, away in ((False, ()), (True, ()), (True, held)):
            if is_again:
                self.make_room(math.inf)
                _return_memory(self.device)
            try:
                with parked(away, self.device):
                    # Nobody else holds the inputs, which are freed before what is held returns.
                    return self.execution.run(
                        self.workloads.draw(key), kind, observer, state=self.execution.state_of(key)
                    )
            except ProblemFailure as failure:
                # Autocast refuses some operators; the class keeps its fixed tolerance.
                if not is_out_of_memory(failure.cause):
                    return None
        return None


def _never():
    return False


def _rounded(wide, strict):
    """fp64 in the type that is compared; whole numbers as FP32 has them."""
    if not strict.is_floating_point():
        return strict
    return wide if strict.dtype == torch.float64 else wide.float()


def _return_memory(device):
    """After memory ran out."""
    # What an error or a user's model holds in a circle.
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
