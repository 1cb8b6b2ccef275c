# SPDX-License-Identifier: Apache-2.0
"""Samples without the driver's part in memory.

PyTorch's allocator keeps what it has asked the driver for, so a model that runs again and again
waits for no memory. Beside a process that holds most of the device it gives back and asks anew in
each pass, milliseconds for each gigabyte, and a model of 5 ms seems to take 25.
"""

import torch

# Samples until one must be without calls.
_MOST_SAMPLES = 4
_NAMES = ("num_device_alloc", "num_device_free", "num_alloc_retries")


def settled(take, device):
    """`take()`, which gives one sample, again until the allocator asked the driver for nothing
    meanwhile.

    Raises OutOfMemoryError where memory is scarce in each; the last sample where the model
    itself gives its memory back.
    """
    for _ in range(_MOST_SAMPLES):
        before = _calls(device)
        sample = take()
        after = _calls(device)
        if after == before:
            return sample
    if after[-1] > before[-1]:
        raise torch.cuda.OutOfMemoryError(
            "out of memory: the allocator had to give memory back in each pass"
        )
    return sample


def _calls(device):
    statistics = torch.cuda.memory_stats_as_nested_dict(device)
    return [statistics.get(name, 0) for name in _NAMES]
