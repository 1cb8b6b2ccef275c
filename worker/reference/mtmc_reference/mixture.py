# SPDX-License-Identifier: Apache-2.0
"""Which mixed workload it is, and the names by which its inputs and its state are known."""

import dataclasses

from . import around, together


@dataclasses.dataclass(frozen=True)
class Mixture:
    """The number of the workload, and the one of the program that it goes around, or 0."""

    number: int
    around: float = 0.0

    @classmethod
    def of(cls, name):
        """What `name` has named."""
        number, *value = name.split()[1:]
        return cls(int(number), *map(float, value))

    def name(self, word):
        """The name behind a word without spaces."""
        return f"{word} {self.number} {self.around!r}" if self.around else f"{word} {self.number}"

    def plan(self, seed_of, numbers):
        """The Plan with GraphNumbers; None where tensors go apart."""
        if self.around:
            return around.plan(self.number, self.around, seed_of(f"around {self.around!r}"))
        return together.plan(self.number, seed_of("together"), numbers)
