# SPDX-License-Identifier: Apache-2.0
"""A worker without work gives its memory back, and works again when there is some.

On a host with a GPU, whose memory is then looked at, too:

    MTMC_BIN=build/release/bin python -m pytest -s tests/e2e/rest_test.py
"""

import pathlib
import subprocess

import problems
import processes
import stack as stacks

# What the issue promises; the worker itself waits for 7 s.
REST_SECONDS = 10
# Of a context, the spare runner's canary and what PyTorch's libraries load.
CONTEXT_BYTES = 2 << 30

HAS_GPU = pathlib.Path("/dev/nvidiactl").exists()
# Enough of a GPU's memory to be seen: 256 MiB a tensor.
ROWS = 1 << 18 if HAS_GPU else 512


def used_bytes():
    """Of the GPU's memory; asked of a process that ends, since asking takes a context."""
    text = "import torch; free, whole = torch.cuda.mem_get_info(); print(whole - free)"
    done = subprocess.run([stacks.PYTHON, "-c", text], capture_output=True, text=True, check=True)
    return int(done.stdout)


def run_job(stack):
    job = stack.create_job(
        problems.pointwise(0, rows=ROWS), **problems.quick(stacks.CONTRACT, trials=1)
    )
    return stack.await_job(job.name, 300)


def children(stack):
    names = ("python", "python3", "mtmc-runner")
    return {p.pid for p in stack.processes() if p.name.startswith(names)}


def test_memory_is_given_back_and_the_next_job_runs(stack):
    before = used_bytes() if HAS_GPU else 0
    run_job(stack)
    working = children(stack)
    processes.eventually(
        lambda: "memory given back" in stack.daemon_log("mtmc-worker"),
        REST_SECONDS,
        "the worker rests",
    )
    processes.eventually(lambda: not working & children(stack), 5, "the old processes end")
    if HAS_GPU:
        at_rest = used_bytes()
        print(f"\nbefore {before >> 20} MiB, at rest {at_rest >> 20} MiB")
        assert at_rest - before < CONTEXT_BYTES
    assert run_job(stack).state == stacks.CONTRACT.Job.State.Value("STATE_SUCCEEDED")
