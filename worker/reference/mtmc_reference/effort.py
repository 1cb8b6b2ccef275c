# SPDX-License-Identifier: Apache-2.0
"""What work takes of a host that others share."""

import time


class Effort:
    """Starts to count the seconds of a stretch of work on `device`.

    On a processor those count for which this process was run, if they are fewer than went by: what
    is left out because it takes too long must not depend on what runs beside it.
    """

    def __init__(self, device):
        self._is_shared = device.type == "cpu"
        self._start, self._own_start = time.monotonic(), time.process_time()

    @property
    def seconds(self):
        """Seconds so far."""
        passed = time.monotonic() - self._start
        return min(passed, time.process_time() - self._own_start) if self._is_shared else passed
