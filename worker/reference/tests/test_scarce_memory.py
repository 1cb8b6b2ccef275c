# SPDX-License-Identifier: Apache-2.0
"""A problem is taken in, and judged, within a few times its own bytes.

The limit is the kernel's: an allocation beyond it fails as it does on a full device.
"""

import os
import subprocess
import sys

import torch
from conftest import PACKAGE
from mtmc_reference import execution, share

# Of inputs and outputs, 16 and 32 MiB. Without a runner, and on a CPU: what a problem of
# gigabytes takes on a GPU is not shown by it.
_RATIO = 3.5
# More outputs than inputs, and an operator whose rounding takes memory to find.
_FORWARD = "return self.conv(x)"
_INIT = "self.conv = nn.Conv2d(16, 32, 1)"
_FOOTER = """
def get_inputs():
    return [torch.rand(1, 16, 512, 512)]
"""
_CHILD = """
import resource, sys
import torch
from mtmc_reference import judge, memory_budget, share, workload
from mtmc_reference.rehearsal import rehearse
from mtmc_reference.session import Session

scratch, path, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])
# Memory of other threads is not given back.
torch.set_num_threads(1)
rehearse(scratch, "cpu")

def used_bytes():
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[0]) * resource.getpagesize()

before = used_bytes()
for module in (workload, memory_budget, judge):
    module.free_bytes = lambda device: max(0, before + limit - used_bytes())
resource.setrlimit(resource.RLIMIT_AS, (before + limit, before + limit))
session = Session(scratch)
dropped = session.load({"path": path, "device": "cpu"})["inspection"]["droppedDistributions"]
# What changes no float has nothing to change here.
# Gradients may take more than there is.
assert set(dropped) <= {f"DISTRIBUTION_{n}" for n in ("REDRAWN", "EXTREMES", "DIRECTED")}, dropped
for number in (0, 1, 2):
    prepared = session.prepare({"workload": number})
    with share.opened(prepared["inputs"], torch.device("cpu")) as tensors:
        y = torch.nn.functional.conv2d(*(tensors[m["name"]] for m in prepared["inputs"][:1]),
                                       tensors["conv_weight"], tensors["conv_bias"])
    publication = share.publish([("y", y)], scratch, torch.device("cpu"))
    del y
    answer = session.compare({"outputs": publication.messages, "prepared": prepared["prepared"]})
    assert answer["isCorrect"], answer
    publication.release()
"""


def test_a_problem_is_judged_within_a_few_times_its_bytes(tmp_path, write_problem):
    path = write_problem(_FORWARD, init=_INIT, footer=_FOOTER)
    size = (16 + 32) * 512 * 512 * 4
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(tmp_path), str(path), str(int(_RATIO * size))],
        # Freed blocks go back at once, as they do to a device.
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "MALLOC_MMAP_THRESHOLD_": "65536"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_room_is_made_for_outputs_that_cannot_be_mapped(client, write_problem, monkeypatch):
    client.load(write_problem("return x * 2"))
    opened, failures = share.opened, []

    def scarce(messages, device):
        # The first time after the candidate has read its inputs.
        if messages[0]["name"] == "y" and not failures:
            failures.append("CUDA runtime call failed: out of memory (cudaErrorMemoryAllocation)")
            raise RuntimeError(failures[0])
        return opened(messages, device)

    monkeypatch.setattr(share, "opened", scarce)
    assert client.check(lambda tensors: tensors["x"] * 2)["isCorrect"] and failures


def test_inputs_that_do_not_fit_in_fp64_cost_the_run_and_not_the_verdict(
    client, write_problem, monkeypatch
):
    client.load(write_problem("return self.fc(x)", init="self.fc = nn.Linear(16, 16)"))
    widened, failures = execution._widened, []

    def scarce(value):
        # Of the model's own parameters there is room.
        if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
            failures.append(value.shape)
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.99 GiB")
        return widened(value)

    monkeypatch.setattr(execution, "_widened", scarce)

    def program(tensors):
        product = tensors["x"].double() @ tensors["fc_weight"].double().T
        return (product + tensors["fc_bias"]).float()

    for seed in (0, 1, 2):
        assert client.check(program, seed)["isCorrect"]
    assert failures
