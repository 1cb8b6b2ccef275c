# SPDX-License-Identifier: Apache-2.0
"""A sample in which the driver was asked for memory counts for nothing."""

import pytest
import torch

from mtmc_reference import allocator_calls


class _Driver:
    """Counts calls; `each` are the numbers of (allocations, frees, retries) within samples."""

    def __init__(self, monkeypatch, each):
        self._each = iter(each)
        self._calls = dict.fromkeys(("num_device_alloc", "num_device_free", "num_alloc_retries"), 7)
        self.samples = 0
        monkeypatch.setattr(
            torch.cuda, "memory_stats_as_nested_dict", lambda device: dict(self._calls)
        )

    def take(self):
        self.samples += 1
        for name, more in zip(self._calls, next(self._each)):
            self._calls[name] += more
        return self.samples

    def settled(self):
        return allocator_calls.settled(self.take, "cuda:0")


def test_a_sample_without_calls_counts(monkeypatch):
    assert _Driver(monkeypatch, [(0, 0, 0)]).settled() == 1


@pytest.mark.parametrize("calls", [(1, 0, 0), (0, 1, 0), (2, 3, 1)])
def test_one_with_calls_is_taken_again(monkeypatch, calls):
    assert _Driver(monkeypatch, [calls, calls, (0, 0, 0)]).settled() == 3


def test_memory_that_is_scarce_in_each_pass_has_run_out(monkeypatch):
    with pytest.raises(torch.cuda.OutOfMemoryError, match="out of memory"):
        _Driver(monkeypatch, [(1, 1, 1)] * 9).settled()


def test_a_model_that_gives_its_memory_back_is_timed_so(monkeypatch):
    driver = _Driver(monkeypatch, [(1, 1, 0)] * 9)
    assert driver.settled() == driver.samples == 4


def test_a_device_without_statistics_has_no_calls(monkeypatch):
    monkeypatch.setattr(torch.cuda, "memory_stats_as_nested_dict", lambda device: {})
    assert allocator_calls.settled(lambda: 5, "cuda:0") == 5
