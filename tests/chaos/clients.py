# SPDX-License-Identifier: Apache-2.0
"""Simulated users: they create jobs, follow them over every outage, and sometimes pause
or cancel one."""

import hashlib
import random
import threading
import time

import contract
import history as histories
import problems
import simulated
import stack as stacks
import world as worlds

C = stacks.CONTRACT
WATCHERS = 2
STREAM_SECONDS = 30
# Projects by name, with their limits. The poor one comes to its end.
PROJECTS = {
    "rich": {"device_us": 3_600_000_000, "tokens": 10_000_000},
    "poor": {"device_us": 8_000_000, "tokens": 3_000},
}
TRIALS = (3, 4, 6, 8)
ENDED = {C.Job.State.Value(f"STATE_{s}") for s in ("SUCCEEDED", "FAILED", "CANCELLED")}


def digest_of(event):
    """The event in a few words for people, and the digest of all of it."""
    digest = hashlib.sha256(event.SerializeToString(deterministic=True)).hexdigest()[:16]
    change = event.WhichOneof("change")
    words = change
    if change == "job":
        words = f"{C.Job.State.Name(event.job.state)[6:]} trials={event.job.budget_use.trials}"
    elif change == "candidate":
        candidate = event.candidate
        words = f"c{candidate.trial} {C.Candidate.State.Name(candidate.state)[6:]} {candidate.program.sha256[:6]}"
    elif change == "notice":
        words = f"notice {event.notice[:60]}"
    return f"{words} #{digest}"


class Storming:
    """What all users share: where they are, and when they begin nothing more."""

    def __init__(self, world, history, seed):
        self.world = world
        self.history = history
        self.seed = seed
        self.is_ending = threading.Event()
        # Nobody tries again any more.
        self.is_over = threading.Event()

    def patiently(self, clients, call, where):
        """Repeats a call at any coordinator until it is answered; None once it is of no use."""
        while not self.is_over.is_set():
            try:
                return call(clients.one)
            except contract.CallError as error:
                if error.reason == "QUOTA_EXCEEDED" and self.is_ending.is_set():
                    return None
                if self.history.is_surprise(error, where):
                    return None
                clients.move()
                self.is_over.wait(0.5 if error.reason == "QUOTA_EXCEEDED" else 0.1)
        return None


class Watcher:
    """Follows a job with its cursor, after each break at any coordinator."""

    def __init__(self, storming, job, number):
        self.watch = histories.Watch(job)
        self.has_ended = threading.Event()
        self._storming = storming
        self._clients = worlds.Clients(storming.world, f"{storming.seed}/{job}/{number}")
        storming.history.add("watches", self.watch)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        events = self.watch.events
        while not self._storming.is_over.is_set():
            cursor = events[-1][0] if events else 0
            try:
                for event in self._clients.one.events(self.watch.job, cursor=cursor, seconds=STREAM_SECONDS):
                    events.append((event.sequence, digest_of(event)))
                    if event.job.state in ENDED:
                        self.has_ended.set()
                # A stream that ended well has told the end.
                if self.has_ended.is_set():
                    break
                self._storming.history.add("surprises", f"the watch of {self.watch.job} ends before the job")
            except contract.CallError as error:
                self._storming.history.is_surprise(error, f"WatchJob of {self.watch.job}")
                self.watch.breaks += 1
            self._clients.move()
            time.sleep(0.05)
        self._clients.close()

    def join(self, seconds):
        self._thread.join(seconds)


class User:
    """One thread that has one job after another. `is_real` asks for the real worker."""

    def __init__(self, storming, number, project, is_real=False):
        self._storming = storming
        self._number = number
        self._project = project
        self._is_real = is_real
        self._random = random.Random(f"{storming.seed}/user/{number}")
        self._clients = worlds.Clients(storming.world, f"{storming.seed}/user/{number}/calls")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def join(self, seconds):
        self._thread.join(max(0.1, seconds))
        self._clients.close()
        return not self._thread.is_alive()

    def _run(self):
        count = 0
        while not self._storming.is_ending.is_set():
            count += 1
            job = self._create(count)
            if job is not None:
                self._follow(job)
            if self._project == "poor":
                # One whose quota is used up would do nothing but ask.
                self._storming.is_ending.wait(2)

    def _job(self, count):
        fields = problems.quick(C, trials=self._random.choice(TRIALS))
        if self._is_real:
            source = problems.pointwise(1000 * self._number + count)
            fields["budget"].max_trials = 2
            fields["worker_selector"] = C.WorkerSelector(worker="workers/real")
            return source, fields
        source = f"# chaos {self._storming.seed} {self._number} {count}\nclass Model: pass\n"
        strategy = self._random.choice(("mtmc", "mtmc", "greedy", "random"))
        fields["search"] = C.SearchOptions(speed_of_light_ratio=10, seed=count, **{strategy: {}})
        fields["worker_selector"] = C.WorkerSelector(product=simulated.PRODUCT)
        if self._random.random() < 0.3:
            fields["search"].coder = "llm"
            fields["budget"].max_tokens = 200_000
        return source, fields

    def _create(self, count):
        source, fields = self._job(count)
        data = source.encode()
        digest = C.Digest(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
        request_id = contract.new_request_id()
        where = f"user {self._number}, job {count}"

        def create(client):
            client.upload(data, digest)
            self._storming.history.uploads.add((digest.sha256, digest.size_bytes))
            problem = C.Problem(display_name=f"chaos-{self._number}-{count}", source=digest)
            return client.call("JobService", "CreateJob", parent=f"projects/{self._project}",
                               job=C.Job(problem=problem, **fields), request_id=request_id).job  # fmt: skip

        job = self._storming.patiently(self._clients, create, where)
        if job is not None:
            budget = fields["budget"]
            self._storming.history.add_job(
                histories.JobSeen(job.name, self._project, budget.max_trials, budget.max_tokens))  # fmt: skip
        return job

    def _follow(self, job):
        watchers = [Watcher(self._storming, job.name, number) for number in range(WATCHERS)]
        draw = self._random.random()
        if draw < 0.1:
            time.sleep(self._random.uniform(0, 2))
            self._storming.history.jobs[job.name].cancelled = time.monotonic()
            self._order("CancelJob", job)
        elif draw < 0.25:
            time.sleep(self._random.uniform(0, 2))
            self._order("PauseJob", job)
            time.sleep(self._random.uniform(0, 2))
            self._order("ResumeJob", job)
        for watcher in watchers:
            while not watcher.has_ended.wait(0.2) and not self._storming.is_over.is_set():
                pass

    def _order(self, method, job):
        self._storming.patiently(
            self._clients, lambda client: client.call("JobService", method, name=job.name), f"{method} of {job.name}")  # fmt: skip


class Sampler:
    """Looks again and again how many jobs are open at once."""

    def __init__(self, storming):
        self._storming = storming
        self._clients = worlds.Clients(storming.world, f"{storming.seed}/sampler")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._storming.is_over.wait(1):
            for project in PROJECTS:
                try:
                    listed = self._clients.one.call(
                        "JobService", "ListJobs", parent=f"projects/{project}", page_size=500,
                        filter="NOT (state = SUCCEEDED OR state = FAILED OR state = CANCELLED)").jobs  # fmt: skip
                except contract.CallError as error:
                    self._storming.history.is_surprise(error, "ListJobs")
                    self._clients.move()
                    continue
                self._storming.history.add("open_jobs", (project, len(listed)))

    def join(self):
        self._thread.join(stacks.contract.CALL_SECONDS + 2)
        self._clients.close()
