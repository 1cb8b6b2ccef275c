# SPDX-License-Identifier: Apache-2.0
"""Work is counted by what this process did, where a processor is shared."""

import time

import torch
from mtmc_reference.effort import Effort


def test_of_a_processor_only_own_work_counts():
    of_processor, of_gpu = Effort(torch.device("cpu")), Effort(torch.device("cuda"))
    time.sleep(0.2)
    assert of_processor.seconds < 0.1
    assert of_gpu.seconds >= 0.2


def test_many_threads_take_no_longer_than_the_clock(monkeypatch):
    effort = Effort(torch.device("cpu"))
    monkeypatch.setattr(time, "process_time", lambda: 1e9)
    assert effort.seconds < 10
