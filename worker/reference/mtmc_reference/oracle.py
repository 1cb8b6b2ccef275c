# SPDX-License-Identifier: Apache-2.0
"""The error that each precision class allows on one workload.

The tolerance of an output is the smallest t with |y - r| <= t + t * |r| for
every element, r being the fp64 run. A class allows

    STRICT       4 times strict FP32's own t, at least a few roundings, and at least
                 twice what another order of the sums may give (`rounding`)
    KERNELBENCH  1e-4 (1e-2 for 16-bit outputs, 1e-9 for float64) or twice eager's own t; on
                 inputs that the problem's author has not chosen 4 times the fixed one, and
                 that of a run whose convolutions are TF32 where cuDNN may choose it
    TF32         1e-3 or twice the t of eager with TF32, or of products of TF32's operands
    HALF         1e-2 or twice the t of autocast

each at least what the class before it allows. What is more than 4 times strict
FP32's own t is also at most a quarter of the t at which all zeros, or the mean
everywhere, would pass. Where products cancel, half precision itself is further away
at single elements; then the outputs must be near as a whole: the root mean square
of y - r at most a quarter of that of r and of r - mean(r), or twice what eager's is. A
single number may be as far away as another order of its sum: which number it is, other
workloads tell.
Integers and booleans must be equal. Groups of elements are bounded besides (`group_bounds`).

All of it is of the workload at hand: inputs that are shifted or have heavy tails
cancel more, for a candidate and for the reference alike. What takes another run of
the model is computed when an output is too far away for what is known so far.
"""

import torch

from .precision import Arithmetic

PRECISIONS = ("PRECISION_STRICT", "PRECISION_KERNELBENCH", "PRECISION_TF32", "PRECISION_HALF")

# Multiples of the own error that a class allows.
_STRICT_FACTOR = 4.0
_FACTOR = 2.0
# KernelBench's tolerance is meant for a problem's own inputs. On changed ones a running
# sum in FP32 may stand still: to a square that outweighs all others, 3,000 small ones
# are added with the same rounding, which comes to 1.3e-4.
_CHANGED_FACTOR = 4.0
# Fraction of the tolerance at which zeros or the mean pass.
_PROBE_FRACTION = 0.25
# Roundings of an output of size 1, by element size (fp32: 16 * 2**-24 = 1e-6).
_ROUNDING = {
    "torch.float64": 1e-12,
    "torch.float32": 1e-6,
    "torch.float16": 2e-3,
    "torch.bfloat16": 1.6e-2,
}
_SMALL_TYPES = ("torch.float16", "torch.bfloat16")

# Lowest tolerance of the classes above STRICT, and the arithmetics whose own error
# widens it.
_CLASSES = {
    "PRECISION_KERNELBENCH": (0.0, (Arithmetic.DEFAULT, Arithmetic.ROUNDED_CONVOLUTIONS)),
    "PRECISION_TF32": (
        1e-3,
        (Arithmetic.DEFAULT, Arithmetic.TF32, Arithmetic.TRUNCATED, Arithmetic.ROUNDED),
    ),
    "PRECISION_HALF": (1e-2, (Arithmetic.BF16, Arithmetic.FP16, Arithmetic.ROUNDED_BF16)),
}
# Arithmetics that eager may choose on one input and not on another. On those that KernelBench
# could draw, it compares with what eager did choose.
_CHANGED_ONLY = (Arithmetic.ROUNDED_CONVOLUTIONS,)


# Of float64 outputs in class KERNELBENCH: what FP32 cannot reach.
_DOUBLE_TOLERANCE = 1e-9


def kernelbench_tolerance(dtype):
    """Absolute and relative tolerance of KernelBench's own comparison."""
    return 1e-2 if str(dtype) in _SMALL_TYPES else 1e-4


class Bounds:
    """Tolerances of the outputs of one workload.

    `spreads` are those of the reference, None for whole numbers; `strict` are strict
    FP32's own tolerances. `own(kind)` gives those of another arithmetic, a list or None
    where the run is not possible, and `knows(kind)` whether that takes no run. `is_changed`
    tells that the inputs are not as `get_inputs` draws them.
    """

    def __init__(self, spreads, dtypes, strict, own, is_changed=False, knows=lambda kind: True):
        self._dtypes = dtypes
        self._strict = strict
        self._own = own
        self._knows = knows
        self._is_changed = is_changed
        self._spreads = {index: each for index, each in enumerate(spreads) if each is not None}

    def rounding(self, index):
        """Least tolerance of STRICT: a few roundings; 0 for whole numbers."""
        if index not in self._spreads:
            return 0.0
        # Proportional to the outputs: an output of 1e-6 rounds to 1e-13.
        size = min(self._spreads[index].zeros_tolerance(), 1.0)
        return _ROUNDING[str(self._dtypes[index])] * size

    def allowed(self, precision, index, needed=float("inf"), is_near=None, own=None):
        """Tolerance of the output at `index`. Other runs of the model may widen it and
        are made only while `needed` is above it. `is_near(index)` tells whether the
        outputs at hand are near as a whole; none are without it."""
        if index not in self._spreads:
            return 0.0
        own = own or self._own

        def cheap(kind):
            """A run in another order costs most: it is made for what nothing else allows."""
            return own(kind) if kind != Arithmetic.REORDERED or self._knows(kind) else None

        tolerance = self._allowed(precision, index, needed, is_near, cheap)
        if needed <= tolerance or self._knows(Arithmetic.REORDERED):
            return tolerance
        return self._allowed(precision, index, needed, is_near, own)

    def _allowed(self, precision, index, needed, is_near, own):
        strict = self._strict_bound(index, needed, is_near, own)
        tolerance = strict
        for name in PRECISIONS[1 : PRECISIONS.index(precision) + 1]:
            bound = self._class_bound(name, index, needed, strict, is_near, own)
            tolerance = max(tolerance, bound)
        return tolerance

    def satisfied(self, needed, is_near=None, precision="PRECISION_STRICT"):
        """Classes that hold for outputs that need these tolerances: each has all that the one
        before it allows. Those before `precision` are told as far as they are known without
        another run: nobody asked for them."""
        first = PRECISIONS.index(precision)
        for number, name in enumerate(PRECISIONS):
            own = self._known if number < first else self._own
            if all(
                t <= self.allowed(name, index, t, is_near, own) for index, t in enumerate(needed)
            ):
                return list(PRECISIONS[number:])
        return []

    def _known(self, kind):
        return self._own(kind) if self._knows(kind) else None

    def _strict_bound(self, index, needed, is_near, own_of):
        own = max(_STRICT_FACTOR * self._strict[index], self.rounding(index))
        reordered = own_of(Arithmetic.REORDERED) if needed > own else None
        if not reordered:
            return own
        bound = max(own, _finite(_FACTOR * reordered[index]))
        cap = self._cap(index, own)
        if bound <= cap or self._spreads[index].elements == 1:
            return bound
        return bound if is_near is not None and is_near(index) else cap

    def _class_bound(self, name, index, needed, strict, is_near, own_of):
        lowest, kinds = _CLASSES[name]
        tolerance = max(lowest, self._kernelbench_bound(index))
        cap = self._cap(index, strict)
        if needed <= min(tolerance, cap):
            return min(tolerance, cap)
        may_exceed = needed > cap and is_near is not None and is_near(index)
        if float("inf") > needed > cap and not may_exceed:
            return min(tolerance, cap)
        own = 0.0
        for kind in kinds:
            if kind in _CHANGED_ONLY and not self._is_changed:
                continue
            own = max(own, _FACTOR * self._own_tolerance(own_of(kind), index))
            if needed <= own:
                break
        return max(min(tolerance, cap), own) if may_exceed else min(max(tolerance, own), cap)

    def fixed(self, precision, index):
        """The least tolerance of a class, whatever the reference's own error is."""
        if precision == "PRECISION_STRICT":
            return _ROUNDING[str(self._dtypes[index])]
        before = self.fixed(PRECISIONS[PRECISIONS.index(precision) - 1], index)
        return max(before, _CLASSES[precision][0], self._kernelbench_bound(index))

    def _kernelbench_bound(self, index):
        dtype = self._dtypes[index]
        if dtype == torch.float64:
            return _DOUBLE_TOLERANCE * (_CHANGED_FACTOR if self._is_changed else 1.0)
        is_widened = self._is_changed and str(dtype) not in _SMALL_TYPES
        return kernelbench_tolerance(dtype) * (_CHANGED_FACTOR if is_widened else 1.0)

    def _own_tolerance(self, own, index):
        # Half autocast may overflow; an infinite error bounds nothing.
        return _finite(own[index]) if own else 0.0

    def _cap(self, index, strict):
        spread = self._spreads[index]
        probes = [spread.zeros_tolerance()]
        if spread.elements > 1:
            probes.append(spread.mean_tolerance())
        caps = [_PROBE_FRACTION * probe for probe in probes]
        return min([cap for cap in caps if cap > strict], default=float("inf"))


def _finite(tolerance):
    return tolerance if tolerance < float("inf") else 0.0
