# SPDX-License-Identifier: Apache-2.0
"""How much memory the workloads of one problem may keep."""

from .share import return_spare_memory, spare_bytes
from .workload import free_bytes, reserved_bytes, return_cached_memory

# Part of the memory that may be kept where others have their room. On a CPU it is also
# the host's.
_KEPT_RATIOS = {"cuda": 0.5, "cpu": 0.25}
# Part of the memory that then stays free whatever else runs on the device.
_FREE_RATIO = 0.05
# Part of what is not in use by others that may be kept in any case.
_LEAST_RATIO = 0.25
# What PyTorch's allocator may keep of small problems: nobody misses it.
_LEAST_PASSING = 256 * 1024 * 1024


class MemoryBudget:
    """The memory of one device.

    `room` are the bytes that others need for one candidate: the runner, and what is
    drawn and run here in passing, of which `passing` may stay when it is done.
    """

    def __init__(self, device, room, passing):
        self._device = device
        self._room = room
        self._passing = max(passing, _LEAST_PASSING)
        # What was free before anything was kept; a runner that comes later has its room.
        self._whole = 0

    def most(self, kept):
        """Bytes that may be kept where `kept` are now."""
        whole = self.whole(kept)
        unused = kept + free_bytes(self._device)
        ratio = _KEPT_RATIOS[self._device.type]
        roomy = min(whole - self._room, int(ratio * whole), unused - int(_FREE_RATIO * whole))
        return max(roomy, int(_LEAST_RATIO * unused))

    def whole(self, kept):
        """Bytes that were free when least was in use, what is `kept` now included."""
        self._whole = max(self._whole, free_bytes(self._device) + kept)
        return self._whole

    def has(self, need):
        """Whether `need` bytes are free, nothing being held for speed alone any more."""
        self.return_all()
        return free_bytes(self._device) >= need

    def return_all(self):
        """Gives to other processes what is held for speed alone."""
        return_spare_memory(self._device)
        return_cached_memory()

    def return_passing(self, kept):
        """Gives to other processes what is held beyond `passing`, and not used.

        `kept` are the bytes of PyTorch's allocator that count as kept. What is left of the
        allocator's, in use or not, is in passing. Not all of it goes: returning gigabytes
        and asking for them again takes longer than reading them.
        """
        if self._device.type != "cuda":
            return
        passing = reserved_bytes(self._device) - kept + spare_bytes(self._device)
        if passing > self._passing:
            return_cached_memory()
