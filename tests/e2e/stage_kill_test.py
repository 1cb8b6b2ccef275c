# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the worker in each stage of an evaluation: the job succeeds by itself
and every candidate is reported once."""

import itertools
import os
import signal
import urllib.request

import problems
import processes
import pytest
import stack as stacks

# A sweep is too short to be met for sure; tests/fault kills in it.
STAGES = ("build", "verify", "measure", "profile")
# Jobs in which a stage of a few milliseconds may be missed.
ATTEMPTS = 3
JOB_SECONDS = 240

numbers = itertools.count(500)


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    with stacks.Stack(tmp_path_factory.mktemp("stages")) as stack:
        yield stack


def create_job(stack):
    fields = problems.quick(stacks.CONTRACT, trials=2)
    # Long enough to be met by a look from outside.
    fields["evaluation"].min_samples = 2000
    fields["evaluation"].omit_profile = False
    return stack.create_job(problems.pointwise(next(numbers)), **fields)


def is_in(stack, stage):
    url = stack.http_endpoints()["mtmc-worker"] + "/metrics"
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            text = response.read().decode()
    except OSError:
        return False
    return any(
        line.startswith("mtmc_worker_phase{") and f'phase="{stage}"' in line and line.endswith(" 1")
        for line in text.splitlines()
    )


def kill_in(stack, stage, job):
    """Whether the worker was met, and killed, in that stage of the job."""
    ended = {stacks.CONTRACT.Job.State.Value(f"STATE_{s}") for s in ("SUCCEEDED", "FAILED")}

    def strike():
        for _ in range(50):
            if is_in(stack, stage):
                for worker in stack.processes("mtmc-worker"):
                    os.kill(worker.pid, signal.SIGKILL)
                return "killed"
        return stack.job(job).state in ended and "missed"

    return processes.eventually(strike, JOB_SECONDS, f"{job} is in stage {stage}", pause=0) == "killed"


@pytest.mark.parametrize("stage", STAGES)
def test_a_worker_killed_in_a_stage_loses_nothing(stack, stage):
    for _ in range(ATTEMPTS):
        job = create_job(stack).name
        if kill_in(stack, stage, job):
            break
    else:
        pytest.fail(f"stage {stage} was never met")

    done = stack.await_job(job, JOB_SECONDS)

    assert done.state == stacks.CONTRACT.Job.State.Value("STATE_SUCCEEDED"), done.failure
    listed = stack.client.call("CandidateService", "ListCandidates", parent=job, page_size=500).candidates
    evaluated = stacks.CONTRACT.Candidate.State.Value("STATE_EVALUATED")
    events = stack.event_log(job)
    reported = [e.candidate.name for e in events if e.candidate.state == evaluated]
    for name in stacks.confirmed(events):
        reported.remove(name)
    assert len(reported) == len(set(reported))
    assert sorted(reported) == sorted(c.name for c in listed if c.HasField("evaluation"))
    crash = stacks.CONTRACT.Failure.Kind.Value("KIND_CRASH")
    assert not [c.name for c in listed if c.evaluation.failure.kind == crash]
