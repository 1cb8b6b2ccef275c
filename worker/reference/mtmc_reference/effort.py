# SPDX-License-Identifier: Apache-2.0
"""What work takes of a host that others share."""

import time


class Effort:
    """Starts to count the seconds of a stretch of work on `device`.

    On a processor those count for which the calling thread was run: what is left out because it
    takes too long must not depend on what runs beside it. Other threads of an operator wait for
    each other at work where they have to share a processor.
    """

    def __init__(self, device):
        self._clock = time.thread_time if device.type == "cpu" else time.monotonic
        self._start = self._clock()

    @property
    def seconds(self):
        """Seconds so far."""
        return self._clock() - self._start
