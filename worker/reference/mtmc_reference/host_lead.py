# SPDX-License-Identifier: Apache-2.0
"""How often the cache is flushed before a timed part, so that the host is done when it begins.

As `worker/device/host_lead.h` has it for candidates.
"""

# Python is slower to launch than the runner.
_FIRST_PASSES = 2
# Half a millisecond of an H200; who needs more is timed as it is.
_MOST_PASSES = 8


class HostLead:
    """One late sample may be the host's scheduler; two in a row give half as many passes more."""

    def __init__(self):
        self.passes = _FIRST_PASSES
        self._was_late = False

    def note(self, is_late):
        """Takes down whether the device had begun before everything was launched.

        True when the sample says nothing of the device and more passes can help.
        """
        is_dropped = is_late and self.passes < _MOST_PASSES
        if is_dropped and self._was_late:
            self.passes = min(self.passes + self.passes // 2, _MOST_PASSES)
            self._was_late = False
        else:
            self._was_late = is_late
        return is_dropped
