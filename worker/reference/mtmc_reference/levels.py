# SPDX-License-Identifier: Apache-2.0
"""Which way each input of a distribution is changed, as the reference accepts it.

What must hold between inputs is learned by asking. All inputs change in their first way;
when the reference refuses, each is tried alone, and those that it refuses alone are changed
in a milder way, at last not at all. If it then still refuses them together, all go on in
the next milder way.
"""

import time

from .distribution import is_mixed

# Inputs are tried alone where there are no more than so many, and until that took so long.
_MOST_ALONE = 8
_SECONDS_ALONE = 4.0


class Levels:
    """Numbers of the ways in use, by distribution and position; `changer` has the ways."""

    def __init__(self, changer):
        self._changer = changer
        # Position to number, of the inputs that change; by distribution.
        self._levels = {}
        self._was_alone = set()
        self._seconds_left = _SECONDS_ALONE
        # Why an input is not changed, by position.
        self.reasons = {}

    def of(self, name):
        """The way of each input that changes."""
        if name not in self._levels:
            self._levels[name] = dict.fromkeys(self._changer.ways(name), 0)
        return self._levels[name]

    def forget(self, name):
        """Forgets a distribution that nobody asks for again."""
        self._levels.pop(name, None)
        self._was_alone.discard(name)
        self._changer.forget(name)

    def soften(self, name, reason, accepts):
        """Goes on with a milder distribution; false where nothing would change any more.

        `accepts(levels)` asks the reference about other levels.
        """
        levels = self.of(name)
        if not levels:
            return False
        may_ask = 1 < len(levels) <= _MOST_ALONE and name not in self._was_alone
        if may_ask and self._seconds_left > 0:
            self._was_alone.add(name)
            start = time.monotonic()
            found = self._alone(name, levels, reason, accepts)
            joined = self._changer.joined(name, found)
            if joined != found and accepts(joined):
                found = joined
            self._seconds_left -= time.monotonic() - start
            if found != levels:
                self._levels[name] = found
                return bool(found)
        if is_mixed(name):
            # One at a time, so that others stay far from what was drawn.
            index = min(levels, key=levels.get)
            rest = {other: level for other, level in levels.items() if other != index}
            self._levels[name] = rest | self._milder(name, {index: levels[index]}, reason)
        else:
            self._levels[name] = self._milder(name, levels, reason)
        return bool(self._levels[name])

    def _alone(self, name, levels, reason, accepts):
        """The first way of each input that the reference accepts, if only it changes."""
        found = {}
        for index, level in levels.items():
            alone = {index: level}
            while alone and not accepts(alone):
                alone = self._milder(name, alone, reason)
            found.update(alone)
        return found

    def _milder(self, name, levels, reason):
        ways = self._changer.ways(name)
        milder = {index: level + 1 for index, level in levels.items() if level + 1 < ways[index]}
        for index in levels.keys() - milder.keys():
            self.reasons[index] = reason
        return milder
