# SPDX-License-Identifier: Apache-2.0
"""The fp64 run of the reference and the error that each precision class allows.

The tolerance of an output is the smallest t with |y - r| <= t + t * |r| for
every element, r being the fp64 run. A class allows

    STRICT       4 times strict FP32's own t, and at least a few roundings
    KERNELBENCH  1e-4 (1e-2 for 16-bit outputs) or twice eager's own t
    TF32         1e-3 or twice the t of eager with TF32
    HALF         1e-2 or twice the t of autocast

each at least what the class before it allows. Above STRICT a tolerance is also
at most a quarter of the t at which all zeros, or the mean everywhere, would
pass. Integers and booleans must be equal.
"""

import torch

from .compare import error, finite_mean
from .failure import ProblemFailure, is_out_of_memory
from .precision import Arithmetic, distinct
from .workload import free_bytes, total_bytes

PRECISIONS = ("PRECISION_STRICT", "PRECISION_KERNELBENCH", "PRECISION_TF32", "PRECISION_HALF")

# Multiples of the own error that a class allows.
_STRICT_FACTOR = 4.0
_FACTOR = 2.0
# Fraction of the tolerance at which zeros or the mean pass.
_PROBE_FRACTION = 0.25
# Roundings of an output of size 1 (fp32: 16 * 2**-24 = 1e-6; bf16: 4 * 2**-8).
_ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
_SMALL_TYPES = (torch.float16, torch.bfloat16)


def kernelbench_tolerance(dtype):
    """Absolute and relative tolerance of KernelBench's own comparison."""
    return 1e-2 if dtype in _SMALL_TYPES else 1e-4


class Oracle:
    """Computes expected outputs, in fp64 where that is possible."""

    def __init__(self, execution, device, draws_random):
        self._execution = execution
        self._device = device
        # A dropout mask drawn for fp64 is another one: compare like with like.
        self.kind = Arithmetic.STRICT if draws_random else Arithmetic.FP64

    def expected(self, inputs, strict=None):
        """Reference outputs; floats as fp64 when it fits, the rest as FP32 has them.

        `strict` are the outputs of a strict FP32 run where the caller has them.
        """
        if strict is None:
            strict = self._execution.run(inputs, Arithmetic.STRICT)
        need = 6 * total_bytes(inputs) + 4 * total_bytes(strict)
        if self.kind == Arithmetic.FP64 and need > free_bytes(self._device):
            self.kind = Arithmetic.STRICT
        if self.kind == Arithmetic.STRICT:
            return strict
        try:
            wide = self._execution.run(inputs, Arithmetic.FP64)
        except ProblemFailure as failure:
            if failure.cause is not None and is_out_of_memory(failure.cause):
                torch.cuda.empty_cache()
            # Out of memory, or types that a file fixes to FP32 in `forward`.
            self.kind = Arithmetic.STRICT
            return strict
        return [w if s.is_floating_point() else s for w, s in zip(wide, strict)]


def own_tolerances(execution, inputs, expected, strict, device):
    """Tolerance of each output in each arithmetic; None where a run is not possible."""
    tolerances = {Arithmetic.STRICT: _tolerances(strict, expected)}
    for kind in distinct(device):
        try:
            tolerances[kind] = _tolerances(execution.run(inputs, kind), expected)
        except ProblemFailure:
            # Autocast refuses some operators; the class keeps its fixed tolerance.
            tolerances[kind] = None
    return tolerances


def bounds(own, expected, dtypes):
    """Tolerances of each class by name, one per output."""
    answer = {name: [] for name in PRECISIONS}
    for index, (reference, dtype) in enumerate(zip(expected, dtypes)):
        if not dtype.is_floating_point:
            for name in PRECISIONS:
                answer[name].append(0.0)
            continue
        at = {kind: ts[index] if ts else None for kind, ts in own.items()}
        for name, tolerance in zip(PRECISIONS, _output_bounds(at, reference, dtype)):
            answer[name].append(tolerance)
    return answer


def _output_bounds(own, reference, dtype):
    def twice(*kinds):
        return max([_FACTOR * own[k] for k in kinds if own.get(k) is not None], default=0.0)

    zeros = error(torch.zeros((), device=reference.device).expand(reference.shape), reference)
    # Proportional to the outputs: an output of 1e-6 rounds to 1e-13.
    rounding = _ROUNDING[dtype] * min(zeros.tolerance, 1.0)
    strict = max(_STRICT_FACTOR * own[Arithmetic.STRICT], rounding)
    base = kernelbench_tolerance(dtype)
    eager = Arithmetic.DEFAULT if own.get(Arithmetic.DEFAULT) is not None else Arithmetic.STRICT
    classes = [
        max(base, twice(eager)),
        max(base, 1e-3, twice(eager, Arithmetic.TF32)),
        max(base, 1e-2, twice(Arithmetic.BF16, Arithmetic.FP16)),
    ]
    probes = [zeros.tolerance]
    if reference.numel() > 1:
        mean = torch.full((), finite_mean(reference), dtype=torch.float64, device=reference.device)
        probes.append(error(mean.expand(reference.shape), reference).tolerance)
    caps = [_PROBE_FRACTION * probe for probe in probes if _PROBE_FRACTION * probe > strict]
    cap = min(caps, default=float("inf"))
    tolerances = [strict]
    for tolerance in classes:
        # Half autocast may overflow; an infinite error bounds nothing.
        tolerance = tolerance if tolerance < float("inf") else tolerances[-1]
        tolerances.append(max(tolerances[-1], min(tolerance, cap)))
    return tolerances


def _tolerances(outputs, expected):
    return [error(y, r).tolerance for y, r in zip(outputs, expected)]
