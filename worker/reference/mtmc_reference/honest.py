# SPDX-License-Identifier: Apache-2.0
"""How far honest runs of one workload are from its oracle: by output, and by group."""

import dataclasses

from .compare import tolerances
from .groups import measured
from .precision import Arithmetic, distinct
from .rounding import Disturbed, unit_of
from .tensor_core import RoundedOperands


@dataclasses.dataclass(frozen=True)
class Honest:
    """The errors of one run: a tolerance and Groups for each output."""

    tolerances: list
    # None for what is not floating-point.
    groups: list


def honest(outputs, reference, spreads):
    """The Honest of `outputs`; `spreads` are those of the reference."""
    pairs = list(zip(outputs, reference))
    return Honest(tolerances(pairs), measured(pairs, spreads))


class HonestRuns:
    """The runs of one workload, each made when it is first asked for.

    `run(kind, observer)` gives the outputs of a run, or None where it fails. `strict` is the
    Honest of strict FP32, and `oracle` the arithmetic of the reference.
    """

    def __init__(self, run, device, dtypes, oracle, reference, spreads, strict):
        self._run = run
        self._device = device
        self._dtypes = dtypes
        self._oracle = oracle
        self._reference = reference
        self._spreads = spreads
        # None where a run failed, or says nothing that another one does not.
        self._found = {Arithmetic.STRICT: strict}

    def find(self, kind):
        """The Honest of the arithmetic `kind`; None where there is none."""
        if kind not in self._found:
            self._found[kind] = self._made(kind)
        return self._found[kind]

    def tolerances(self, kind):
        found = self.find(kind)
        return found and found.tolerances

    def groups(self, kind):
        found = self.find(kind)
        return found and found.groups

    def _made(self, kind):
        if kind == Arithmetic.REORDERED:
            return self._reordered()
        if kind == Arithmetic.ROUNDED:
            return self._judged(Arithmetic.STRICT, RoundedOperands())
        if kind == Arithmetic.ROUNDED_CONVOLUTIONS:
            if self._device.type != "cuda":
                return None
            return self._judged(Arithmetic.STRICT, RoundedOperands(is_of_convolutions=True))
        return self._judged(kind) if kind in distinct(self._device) else None

    def _judged(self, kind, observer=None):
        outputs = self._run(kind, observer)
        return outputs and honest(outputs, self._reference, self._spreads)

    def _reordered(self):
        """Each output as disturbed by the rounding of its own type."""
        units = sorted({unit_of(t) for t in self._dtypes if t.is_floating_point})
        runs = {unit: self._judged(self._oracle, Disturbed(unit)) for unit in units}
        if not runs or not all(runs.values()):
            return None
        chosen = [runs[unit_of(t) if t.is_floating_point else units[0]] for t in self._dtypes]
        return Honest(
            [run.tolerances[index] for index, run in enumerate(chosen)],
            [run.groups[index] for index, run in enumerate(chosen)],
        )
