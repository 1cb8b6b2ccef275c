# SPDX-License-Identifier: Apache-2.0
"""What the outputs of each workload must be, remembered by workload."""

import collections
import dataclasses

from .precision import Arithmetic
from .workload import free_bytes, total_bytes

# Part of the free memory that remembered workloads may take.
_CACHE_RATIO = 0.25


@dataclasses.dataclass(frozen=True)
class Expectation:
    """Outputs in graph order: of the oracle, and of eager with PyTorch's defaults."""

    reference: list
    eager: list

    def byte_count(self):
        return total_bytes(self.reference) + total_bytes(self.eager)


class Expectations:
    """Computes an expectation once per workload, while memory lasts."""

    def __init__(self, execution, oracle, device):
        self._execution = execution
        self._oracle = oracle
        self._device = device
        self._by_workload = collections.OrderedDict()
        # Of the workload prepared last; None before the first.
        self.current = None

    def prepare(self, number, inputs):
        """Makes `current` the expectation of workload `number`, whose inputs are given."""
        found = self._by_workload.pop(number, None)
        if found is None:
            self.current = None
            found = self._compute(inputs)
        self.current = found
        self._by_workload[number] = found
        self._evict()

    def _compute(self, inputs):
        eager = self._execution.run(inputs, Arithmetic.DEFAULT)
        # On a CPU the default is strict FP32 already.
        strict = eager if self._device.type == "cpu" else None
        return Expectation(self._oracle.expected(inputs, strict), eager)

    def _evict(self):
        """Forgets the workloads that were used longest ago, the current one never."""
        kept = sum(entry.byte_count() for entry in self._by_workload.values())
        most = _CACHE_RATIO * (free_bytes(self._device) + kept)
        while len(self._by_workload) > 1 and kept > most:
            _, forgotten = self._by_workload.popitem(last=False)
            kept -= forgotten.byte_count()
