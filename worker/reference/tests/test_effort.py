# SPDX-License-Identifier: Apache-2.0
"""Work is counted by what its thread did, where a processor is shared."""

import threading
import time

import torch
from mtmc_reference.effort import Effort


def test_of_a_processor_only_own_work_counts():
    of_processor, of_gpu = Effort(torch.device("cpu")), Effort(torch.device("cuda"))
    time.sleep(0.2)
    assert of_processor.seconds < 0.1
    assert of_gpu.seconds >= 0.2


def test_what_other_threads_do_meanwhile_does_not_count():
    ends = threading.Event()

    def spin():
        while not ends.is_set():
            pass

    effort, thread = Effort(torch.device("cpu")), threading.Thread(target=spin)
    thread.start()
    time.sleep(0.2)
    ends.set()
    thread.join()
    assert effort.seconds < 0.1
