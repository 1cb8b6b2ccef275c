# SPDX-License-Identifier: Apache-2.0
"""Runs that may take the process with them.

Inputs that a model is not made for can trip an assertion on the device, after which
nothing in the process works. Such a run leaves a mark on the disk before it starts and
takes it away when all is still well. The process that finds a mark does not repeat the
run: it costs one draw. After two of them, only values in the range of `get_inputs` are
tried, because whoever waits for the problem does not start processes without end.
"""

import hashlib
import json
import os

from .failure import CONTEXT_LOST, Dropped
from .workload import wait_for_device

# Deaths after which a run is not repeated: a process on a host may have been killed for
# something else.
_MOST_REPEATED = {"cuda": 1, "cpu": 2}
# Runs that a process died of after which no risk is taken.
MOST_DEADLY = 2


class Peril:
    """Marks of one problem in the folder `scratch`."""

    def __init__(self, scratch, source, device):
        digest = hashlib.sha256(source.encode()).hexdigest()[:16]
        self._path = os.path.join(scratch, f"peril-{digest}")
        self._device = device
        # Deaths by run.
        self._deaths = _read(self._path)

    def run(self, what, is_risky, function, most=MOST_DEADLY):
        """The result of `function`; ends the process when it breaks the device. Raises
        Dropped where a process died of it before, or of `most` runs and it `is_risky()`."""
        if self._deaths.get(what, 0) >= _MOST_REPEATED[self._device.type]:
            raise Dropped("the process of the reference died there")
        if len(self._deaths) >= most and is_risky():
            raise Dropped("not tried: other values than drawn ended the reference's process")
        self._write({**self._deaths, what: self._deaths.get(what, 0) + 1})
        try:
            return function()
        finally:
            if self._device.type == "cuda" and is_context_lost(self._device):
                os._exit(CONTEXT_LOST)
            self._write(self._deaths)

    def _write(self, deaths):
        if not deaths:
            os.unlink(self._path)
            return
        with open(self._path, "w", encoding="utf-8") as file:
            json.dump(deaths, file)


def is_context_lost(device=None):
    """Whether an error has ended the CUDA context: nothing works in the process any more."""
    try:
        wait_for_device(device)
    except RuntimeError:
        return True
    return False


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}
