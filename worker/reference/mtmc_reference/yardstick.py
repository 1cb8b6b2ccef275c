# SPDX-License-Identifier: Apache-2.0
"""A kernel of our own, timed beside a baseline's: what this process adds to every time.

The candidate's process has the same one (`worker/cuda/cuda_yardstick.h`), and the
difference of the two is none of the programs'.
"""

import functools
import pathlib
import secrets
import sys

import torch

_SOURCE = pathlib.Path(__file__).with_suffix(".cu")
# As `cuda_yardstick.cc` has them.
_BLOCKS = 256
_THREADS = 256
_BYTES = _BLOCKS * _THREADS * 4
# 128 pages of 2 MiB, or a 64th of the device's memory where that is less.
_MOST_ARENA_BYTES = 256 << 20
_MEMORY_SHARE = 64
_ALIGNMENT = 512


class Yardstick:
    """The kernel and its data, on one device."""

    def __init__(self, kernel, arena):
        self._kernel = kernel
        self._arena = arena

    def launch(self):
        """Enqueues the kernel, with its data at another place each time."""
        half = self._arena.nbytes // 2 // _ALIGNMENT * _ALIGNMENT
        places = (half - _BYTES) // _ALIGNMENT
        offsets = [start + secrets.randbelow(places) * _ALIGNMENT for start in (0, half)]
        base = self._arena.data_ptr()
        self._kernel.launch(_BLOCKS, _THREADS, [base + offset for offset in offsets])


@functools.cache
def find(device):
    """The device's yardstick; None, and a line on the standard error, where it has none."""
    if device.type != "cuda":
        return None
    try:
        from .cuda_kernel import Kernel

        kernel = Kernel(source(), "mtmc_yardstick", device)
        memory = torch.cuda.get_device_properties(device).total_memory
        size = min(_MOST_ARENA_BYTES, memory // _MEMORY_SHARE)
        return Yardstick(kernel, torch.zeros(size, dtype=torch.uint8, device=device))
    except (ImportError, OSError, RuntimeError) as problem:
        print(f"no yardstick for short kernels: {problem}", file=sys.stderr)
        return None


def source():
    """The text of the kernel."""
    return _SOURCE.read_text(encoding="utf-8")
