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
        self._is_scarce = False

    def there(self, state):
        """The publication of a state in a list, empty where there is none; who finds it
        damaged releases it."""
        return [self._by_state[state]] if state in self._by_state else []

    def find(self, state):
        """The publication of a state, made where it is not there."""
        found = self._by_state.get(state)
        if found is None or found.is_released:
            found = self._by_state[state] = self._publish(state)
            size = sum(each.byte_count for each in self._by_state.values())
            self._is_scarce = not self._may_keep(size)
        self._by_state.move_to_end(state)
        if self._is_scarce:
            self.make_room()
        return found

    def forget(self, state):
        """Frees a state that nobody asks for again."""
        for publication in self.there(state):
            publication.release()
        self._by_state.pop(state, None)

    def make_room(self):
        """Frees those that no workload in use has."""
        while len(self._by_state) > _IN_USE:
            self._by_state.popitem(last=False)[1].release()

    def release(self):
        """Frees all."""
        for publication in self._by_state.values():
            publication.release()
        self._by_state.clear()
