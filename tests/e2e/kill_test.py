# SPDX-License-Identifier: Apache-2.0
"""kill -9 of any process at any moment: jobs go on by themselves, and no finished
evaluation is lost or done twice."""

import os
import random
import signal
import threading
import time

import contract
import grpc
import problems
import processes
import pytest
import stack as stacks

KILLS = int(os.environ.get("MTMC_KILLS", "50"))
SEED = int(os.environ.get("MTMC_KILL_SEED", "20260711"))

# Processes that work on a lease. Work that loses three workers, or crashes twice,
# is given up by design, so that a bad program cannot take down the fleet; one of
# these is therefore killed only once anything was finished since the last, and while
# the worker is busy with something that no such blow has met.
WORKING = {"mtmc-worker": 8, "mtmc-runner": 8, "mtmc-builder": 3, "mtmc_reference": 3}
# Processes that keep or decide, killed at any time.
SERVING = {"mtmc-coordinator": 22, "mtmc-gateway": 3, "mtmc-policyd": 3}

# Jobs that are under way at a time: one is worked on, the others search and wait.
JOBS_AT_A_TIME = 3
PROGRESS_SECONDS = 180
END_SECONDS = 240

STATE = stacks.CONTRACT.Candidate.State
ENDED = {"STATE_SUCCEEDED", "STATE_FAILED", "STATE_CANCELLED"}


def name_of(job):
    return stacks.CONTRACT.Job.State.Name(job.state)


class Watcher:
    """Follows one job over every restart, by its cursor alone."""

    def __init__(self, endpoint, job):
        self.job = job
        self.events = []
        self.breaks = 0
        self._client = contract.Client(stacks.CONTRACT, endpoint)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self):
        while not self.has_ended():
            cursor = self.events[-1].sequence if self.events else 0
            try:
                self.events.extend(self._client.events(self.job, cursor=cursor, seconds=60))
            except contract.CallError as error:
                # The coordinator is down, or the stream lasted its 60 seconds.
                expected = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED,
                            grpc.StatusCode.CANCELLED)  # fmt: skip
                assert error.code in expected, error
                self.breaks += 1
                time.sleep(0.1)

    def has_ended(self):
        return any(e.HasField("job") and name_of(e.job) in ENDED for e in list(self.events))

    def num_finished(self):
        """Pieces of work that were finished: the inspection and evaluations."""
        events = list(self.events)
        evaluated = sum(e.candidate.state == STATE.Value("STATE_EVALUATED") for e in events)
        return evaluated + any(e.job.HasField("inspection") for e in events)

    def join(self):
        self._thread.join(60)
        assert not self._thread.is_alive(), f"the watch of {self.job} does not end"
        self._client.close()


def patiently(call):
    """Repeats a call until a coordinator is there; with one request id the
    repetition is harmless."""

    def look():
        try:
            return call()
        except contract.CallError as error:
            assert error.code == grpc.StatusCode.UNAVAILABLE, error
            return None

    return processes.eventually(look, 60, "the coordinator is back", pause=0.1)


class Storm:
    """Keeps jobs under way, and kills."""

    def __init__(self, stack):
        self.stack = stack
        self.random = random.Random(SEED)
        self.watchers = []
        self.killed = []
        # Names of jobs and candidates that a worker was busy with when it was hit.
        self.hit = set()
        # Pieces of work that were finished by then.
        self.finished = -1

    def keep_jobs_under_way(self):
        while sum(not watcher.has_ended() for watcher in self.watchers) < JOBS_AT_A_TIME:
            source = problems.pointwise(len(self.watchers))
            request_id = contract.new_request_id()
            options = problems.quick(stacks.CONTRACT, seed=len(self.watchers))
            job = patiently(
                lambda source=source, request_id=request_id, options=options: self.stack.create_job(
                    source, request_id=request_id, **options
                )
            )
            self.watchers.append(Watcher(self.stack.endpoint, job.name))

    def num_finished(self):
        self.keep_jobs_under_way()
        return sum(watcher.num_finished() for watcher in self.watchers)

    def activity(self):
        """What the worker is busy with; empty when it has nothing to do."""
        listed = patiently(lambda: self.stack.client.call("WorkerService", "ListWorkers"))
        return next((worker.activity for worker in listed.workers), "")

    def await_target(self):
        """Until the worker is busy with what no blow has met, at any moment of it."""
        while True:
            processes.eventually(
                lambda: self.num_finished() > self.finished,
                PROGRESS_SECONDS,
                f"anything is finished after {self.killed}",
            )
            self.pause()
            target = self.activity()
            if target not in self.hit:
                break
            processes.eventually(
                lambda: self.activity() not in self.hit, PROGRESS_SECONDS, f"{target} is done"
            )
        self.finished = self.num_finished()
        self.hit |= {target} - {""}

    def pause(self):
        # From one fsync to a whole stage: the moments differ in what is open.
        time.sleep(self.random.choice((0.0, 0.05, 0.3, 1.0)) * self.random.random())

    def kill(self, name):
        """Kills one process of that name, as soon as there is one."""

        def strike():
            found = self.stack.processes(name)
            if not found:
                return False
            try:
                os.kill(self.random.choice(found).pid, signal.SIGKILL)
            except ProcessLookupError:
                return False
            return True

        processes.eventually(strike, 120, f"there is a {name} to kill", pause=0.02)
        self.killed.append(name)

    def rage(self):
        plan = [name for name, count in (WORKING | SERVING).items() for _ in range(count)]
        self.random.shuffle(plan)
        for name in plan[:KILLS]:
            if name in WORKING:
                self.await_target()
            else:
                self.keep_jobs_under_way()
                self.pause()
            self.kill(name)

    def await_ends(self):
        for watcher in self.watchers:
            processes.eventually(watcher.has_ended, END_SECONDS, f"{watcher.job} ends", pause=0.2)
            watcher.join()


@pytest.fixture(scope="module")
def storm(tmp_path_factory):
    print(f"\nMTMC_KILL_SEED={SEED} MTMC_KILLS={KILLS}")
    with stacks.Stack(tmp_path_factory.mktemp("storm")) as stack:
        storm = Storm(stack)
        started = time.monotonic()
        storm.rage()
        storm.await_ends()
        breaks = sum(watcher.breaks for watcher in storm.watchers)
        print(f"{len(storm.killed)} kills, {len(storm.watchers)} jobs, {breaks} broken watches, "
              f"{time.monotonic() - started:.0f} s")  # fmt: skip
        yield storm


def candidates(storm, job):
    client = storm.stack.client
    return client.call("CandidateService", "ListCandidates", parent=job, page_size=500).candidates


def test_every_job_succeeds_by_itself(storm):
    assert len(storm.killed) == KILLS
    jobs = [storm.stack.job(watcher.job) for watcher in storm.watchers]
    ends = {job.name: (name_of(job), job.failure.message) for job in jobs}
    failed = [job.name for job in jobs if name_of(job) != "STATE_SUCCEEDED"]
    why = {name: storm.stack.failures(name) for name in failed}
    assert all(state == "STATE_SUCCEEDED" for state, _ in ends.values()), (ends, why)


def test_event_numbers_have_no_gap_in_the_log_that_is_left(storm):
    for watcher in storm.watchers:
        sequences = [event.sequence for event in storm.stack.event_log(watcher.job)]
        assert sequences == list(range(1, len(sequences) + 1)), watcher.job


def test_a_watch_resumed_by_its_cursor_saw_each_event_once(storm):
    assert sum(watcher.breaks for watcher in storm.watchers) > 0
    for watcher in storm.watchers:
        assert watcher.events == storm.stack.event_log(watcher.job), watcher.job


def is_evaluated(event):
    return event.candidate.state == STATE.Value("STATE_EVALUATED")


def test_each_candidate_is_evaluated_once_and_confirmed_once_at_most(storm):
    for watcher in storm.watchers:
        evaluated = [event.candidate.name for event in watcher.events if is_evaluated(event)]
        confirmed = stacks.confirmed(watcher.events)
        for name in confirmed:
            evaluated.remove(name)
        assert len(evaluated) == len(set(evaluated)), watcher.job
        assert len(confirmed) == len(set(confirmed)), watcher.job
        listed = [c.name for c in candidates(storm, watcher.job) if c.HasField("evaluation")]
        assert sorted(evaluated) == sorted(listed), watcher.job


def test_no_finished_evaluation_changes_afterwards(storm):
    for watcher in storm.watchers:
        now = {candidate.name: candidate for candidate in candidates(storm, watcher.job)}
        confirmed = stacks.confirmed(watcher.events)
        for event in filter(is_evaluated, watcher.events):
            is_first_of_two = event.candidate.name in confirmed and event.candidate.evaluation.skipped_confirmation
            assert is_first_of_two or event.candidate == now[event.candidate.name]


def test_no_candidate_is_blamed_for_workers_that_are_killed(storm):
    crash = stacks.CONTRACT.Failure.Kind.Value("KIND_CRASH")
    blamed = {
        candidate.name: candidate.evaluation.failure.message
        for watcher in storm.watchers
        for candidate in candidates(storm, watcher.job)
        if candidate.evaluation.failure.kind == crash
    }
    assert not blamed


def without_known_steps(listed):
    """Candidates that cost a trial: not those whose program the job had judged before."""
    judged, found = set(), []
    for candidate in sorted(listed, key=lambda c: c.trial):
        program = candidate.program.sha256
        if candidate.trial > 0 and not (candidate.evaluation.is_cached and program in judged):
            found.append(candidate)
        if candidate.HasField("evaluation"):
            judged.add(program)
    return found


def test_budget_use_counts_each_trial_once(storm):
    for watcher in storm.watchers:
        listed = list(candidates(storm, watcher.job))
        assert len(listed) == len({c.trial for c in listed}), watcher.job
        trials = len(without_known_steps(listed))
        assert storm.stack.job(watcher.job).budget_use.trials == trials, watcher.job
