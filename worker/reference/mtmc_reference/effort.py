# SPDX-License-Identifier: Apache-2.0
"""What work takes of a host that others share."""

import time


class Effort:
    """Starts to count the seconds of a stretch of work on `device`.

    On a processor those count for which the calling thread was run, if they are fewer than went
    by: what is left out because it takes too long must not depend on what runs beside it. Other
    threads of an operator wait for each other at work where they have to share a processor.
    """

    def __init__(self, device):
        self._is_shared = device.type == "cpu"
        self._start, self._own_start = time.monotonic(), time.thread_time()

    @property
    def seconds(self):
        """Seconds so far."""
        passed = time.monotonic() - self._start
        return min(passed, time.thread_time() - self._own_start) if self._is_shared else passed
