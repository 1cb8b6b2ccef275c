# SPDX-License-Identifier: Apache-2.0
"""Where the tensors of a mixed workload go that go together."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Plan:
    """Where tensors go: each of these is a way, or None where such tensors stay."""

    inputs: object = None
    # Parameters and buffers of up to one axis, and of more.
    vectors: object = None
    matrices: object = None
    # Whole numbers that only arithmetic takes, and masks.
    numbers: object = None
    masks: object = None
    # What has no way here does not stay, but goes one of its own.
    is_apart: bool = False
    # No tensor that has a way stays.
    is_for_all: bool = False
    # Ways by the names that a graph has for its inputs: all others stay then.
    named: dict = None

    def called(self, wrap):
        """The Plan of what `wrap` makes of each way."""
        ways = (self.inputs, self.vectors, self.matrices, self.numbers, self.masks)
        named = self.named and {name: wrap(way) for name, way in self.named.items()}
        return Plan(*(way and wrap(way) for way in ways), self.is_apart, self.is_for_all, named)
