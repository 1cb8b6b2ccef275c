# SPDX-License-Identifier: Apache-2.0
"""Runs that may take the CUDA context with them.

Inputs that a model is not made for can trip an assertion on the device, after which
nothing in the process works. Such a run leaves a mark on the disk before it starts
and takes it away when the device is still well. The process that finds a mark
knows which run ended the one before it.
"""

import hashlib
import os

from .failure import CONTEXT_LOST
from .workload import wait_for_device


class Peril:
    """Marks of one problem in the folder `scratch`; none are needed on a CPU."""

    def __init__(self, scratch, source, device):
        digest = hashlib.sha256(source.encode()).hexdigest()[:16]
        self._path = os.path.join(scratch, f"peril-{digest}")
        self._device = device
        self._fatal = None
        if device.type == "cuda" and os.path.exists(self._path):
            with open(self._path, encoding="utf-8") as file:
                self._fatal = file.read()

    def fatal(self):
        """What ended a process before this one; None if nothing did."""
        return self._fatal

    def run(self, what, function):
        """The result of `function`; ends the process when it breaks the device."""
        if self._device.type != "cuda":
            return function()
        with open(self._path, "w", encoding="utf-8") as file:
            file.write(what)
        try:
            return function()
        finally:
            if is_context_lost(self._device):
                os._exit(CONTEXT_LOST)
            os.unlink(self._path)


def is_context_lost(device=None):
    """Whether an error has ended the CUDA context: nothing works in the process any more."""
    try:
        wait_for_device(device)
    except RuntimeError:
        return True
    return False
