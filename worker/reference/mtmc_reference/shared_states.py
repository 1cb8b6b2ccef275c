# SPDX-License-Identifier: Apache-2.0
"""The states of a model as other processes see them, each shared once."""

import collections

# The state of the workload at hand, and of the one before it, which may be in use.
_IN_USE = 2


class SharedStates:
    """Publications by name of the state. A resource: `release` frees them.

    `publish(state)` shares one, `may_keep(size)` tells whether publications of so many bytes
    may stay. Where they may not, those used last do.
    """

    def __init__(self, publish, may_keep):
        self._publish = publish
        self._may_keep = may_keep
        # The one used last is at the end.
        self._by_state = collections.OrderedDict()

    def publications(self):
        """All that are there; who finds one damaged releases it."""
        return list(self._by_state.values())

    def find(self, state):
        """The publication of a state, made where it is not there."""
        found = self._by_state.get(state)
        if found is None or found.is_released:
            found = self._by_state[state] = self._publish(state)
        self._by_state.move_to_end(state)
        if not self._may_keep(sum(each.byte_count for each in self._by_state.values())):
            self.make_room()
        return found

    def make_room(self):
        """Frees those that no workload in use has."""
        while len(self._by_state) > _IN_USE:
            self._by_state.popitem(last=False)[1].release()

    def release(self):
        """Frees all."""
        for publication in self._by_state.values():
            publication.release()
        self._by_state.clear()
