# SPDX-License-Identifier: Apache-2.0
"""A worker that is told to end in the middle of an evaluation: it ends within its grace, and the
job has lost nothing but time."""

import re
import signal
import time
import urllib.request

import problems
import processes
import pytest
import stack as stacks

JOB_SECONDS = 240
# Above the grace, with what it takes to end the children; far below the silence after which a
# worker is lost.
END_SECONDS = 8
BUSY = stacks.CONTRACT.Worker.State.Value("STATE_RUNNING")


class Fleet(stacks.Daemons):
    """All daemons, and workers that come and go. A context manager."""

    def launch(self):
        listen = ("--listen", "127.0.0.1:0")
        policy = self.add("mtmc-policyd", *listen)
        gateway = self.add("mtmc-gateway", *listen)
        self.endpoint = self.add("mtmc-coordinator", *listen, "--policy", policy, "--gateway", gateway,
                                 "--data-dir", self.folder / "data")  # fmt: skip

    def add_worker(self, name, grace):
        """A worker, once it serves."""
        self.add("mtmc-worker", "--coordinator", self.endpoint, "--name", name, "--grace", grace,
                 "--scratch", self.folder / name)  # fmt: skip
        return self._daemons[-1]

    def worker(self, name):
        return self.client.call("WorkerService", "GetWorker", name=f"workers/{name}").worker

    def await_candidate(self, *names):
        """Until one of these workers is busy with a candidate: the names of both."""

        def look():
            for name in names:
                worker = self.worker(name)
                if worker.state == BUSY and "/candidates/" in worker.activity:
                    return name, worker.activity
            return None

        return processes.eventually(look, JOB_SECONDS, f"{names} work", pause=0.02)

    def counted(self, metric):
        """A counter of the coordinator, by the value of its only label."""
        with urllib.request.urlopen(f"http://{self.http['mtmc-coordinator']}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        return {cause: float(count) for cause, count in re.findall(rf'^{metric}{{cause="(\w+)"}} (\S+)$', text, re.M)}


def long_job(stack):
    """Evaluations of many seconds."""
    fields = problems.quick(stacks.CONTRACT, trials=1)
    fields["evaluation"].min_samples = 4000
    return stack.create_job(problems.pointwise(71), **fields).name


@pytest.fixture
def fleet(tmp_path):
    with Fleet(tmp_path) as fleet:
        yield fleet
    assert set(fleet.exit_codes) == {0}


def test_a_lease_that_takes_too_long_is_given_back(fleet):
    workers = {name: fleet.add_worker(name, "500ms") for name in ("first", "second")}
    job = long_job(fleet)
    owner, candidate = fleet.await_candidate(*workers)
    (other,) = set(workers) - {owner}

    told = time.monotonic()
    workers[owner].send_signal(signal.SIGTERM)

    assert fleet.await_candidate(other) == (other, candidate)
    assert time.monotonic() - told < END_SECONDS
    assert workers[owner].wait(stacks.STOP_SECONDS) == 0
    assert time.monotonic() - told < END_SECONDS
    assert "no time left for the lease" in fleet.log("mtmc-worker")
    done = fleet.await_job(job, JOB_SECONDS)
    assert done.state == stacks.CONTRACT.Job.State.Value("STATE_SUCCEEDED"), done.failure
    assert fleet.failures(job) == []
    assert set(fleet.counted("mtmc_worker_lost_total").values()) == {0}
    assert fleet.counted("mtmc_task_retries_total") == {"worker_lost": 0, "candidate_failed": 0, "given_back": 1}
    evaluated = stacks.CONTRACT.Candidate.State.Value("STATE_EVALUATED")
    events = fleet.event_log(job)
    reported = [e.candidate.name for e in events if e.candidate.state == evaluated]
    for name in stacks.confirmed(events):
        reported.remove(name)
    assert reported.count(candidate) == 1 and len(reported) == len(set(reported))


def test_a_lease_that_is_done_in_time_is_finished(fleet):
    worker = fleet.add_worker("only", "4m")
    job = fleet.create_job(problems.pointwise(72), **problems.quick(stacks.CONTRACT, trials=1)).name
    _, candidate = fleet.await_candidate("only")

    worker.send_signal(signal.SIGTERM)

    assert worker.wait(stacks.STOP_SECONDS) == 0
    listed = fleet.client.call("CandidateService", "GetCandidate", name=candidate)
    assert listed.candidate.HasField("evaluation")
    assert set(fleet.counted("mtmc_task_retries_total").values()) == {0}
    fleet.client.call("JobService", "CancelJob", name=job, request_id=stacks.contract.new_request_id())
