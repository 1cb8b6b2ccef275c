# SPDX-License-Identifier: Apache-2.0
"""Values of a model's tensors in states that were drawn before: to draw hundreds of tensors takes
longer than to run the model."""

import collections

from .workload import total_bytes

# Bytes of all states whose values are kept, beside those that are shared, and of one that is kept
# alone: a workload is run in it some times.
_MOST_BYTES, _MOST_ALONE_BYTES = 256 << 20, 512 << 20


class KeptValues:
    """Values by state and target, with what they were drawn from. Those of the states of `lasting`
    names are forgotten after all others."""

    def __init__(self, lasting):
        self._lasting = lasting
        # (origin, values) by state and target.
        self._values = {}

    def of(self, state, target, origin):
        """The values of a tensor that were drawn from that; None without."""
        found, values = self._values.get((state, target), (None, None))
        return values if found == origin else None

    def keep(self, state, target, origin, values):
        self._values[state, target] = (origin, values)

    def states(self):
        """Names of the states of which some are kept."""
        return {state for state, _ in self._values}

    def make_room(self, state, size):
        """Whether the values of a state may be kept, which take so many bytes; forgets those of
        others for it, the oldest first."""
        if size > _MOST_ALONE_BYTES:
            return False
        others = collections.defaultdict(list)
        for key in self._values:
            if key[0] != state:
                others[key[0]].append(key)
        order = sorted(others, key=lambda name: name in self._lasting)
        sizes = [total_bytes(self._values[key][1] for key in others[name]) for name in order]
        left = sum(sizes) + size
        for name, freed in zip(order, sizes):
            if left <= _MOST_BYTES:
                break
            left -= freed
            for key in others[name]:
                del self._values[key]
        return True

    def forget(self, state):
        for key in [key for key in self._values if key[0] == state]:
            del self._values[key]

    def forget_all(self):
        self._values.clear()
