# SPDX-License-Identifier: Apache-2.0
"""What clients and workers saw and were told, as plain values, which the judge reads.

Times are of one monotonic clock, in seconds."""

import dataclasses
import threading


@dataclasses.dataclass
class JobSeen:
    """A job whose creation was answered with OK."""

    name: str
    project: str
    max_trials: int
    max_tokens: int = 0
    # When somebody first asked for its end.
    cancelled: float = None


@dataclasses.dataclass
class Watch:
    """One who follows a job, over every reconnection."""

    job: str
    # (sequence, digest of the event), as they came.
    events: list = dataclasses.field(default_factory=list)
    breaks: int = 0


@dataclasses.dataclass
class Result:
    """An evaluation that a simulated worker finished. `tag` is in it."""

    job: str
    candidate: str
    tag: str
    device_us: int
    # First call that carried it, and the first of them that was answered with OK.
    sent: float
    acknowledged: float = None


@dataclasses.dataclass
class Grant:
    """A lease of a worker. `called` is when the call began that brought it first."""

    lease: str
    candidate: str
    worker: str
    called: float


class History:
    """Thread-safe for those who add; read it when they are done."""

    def __init__(self):
        self.jobs = {}
        self.watches = []
        self.results = []
        self.grants = []
        # (project, open jobs that one listing showed at once).
        self.open_jobs = []
        # Answers that no fault explains, as texts.
        self.surprises = []
        # Uploads that were answered with OK, by digest.
        self.uploads = set()
        self._lock = threading.Lock()

    def add(self, kind, value):
        with self._lock:
            getattr(self, kind).append(value)

    def add_job(self, job):
        with self._lock:
            self.jobs[job.name] = job

    def is_surprise(self, error, where):
        """Whether an answer is not one that a client would repeat; it is kept then."""
        if error.code.name in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"):
            return False
        if error.code.name == "FAILED_PRECONDITION" and error.reason == "JOB_CANCELLING":
            # Asked to pause a job whose end is being recorded.
            return False
        if error.code.name == "RESOURCE_EXHAUSTED" and error.reason in ("DISK_FULL", "QUOTA_EXCEEDED"):
            return False
        self.add("surprises", f"{where}: {error}")
        return True

    def as_dict(self):
        """All of it, for JSON."""
        return {
            "jobs": {name: dataclasses.asdict(job) for name, job in self.jobs.items()},
            "watches": [dataclasses.asdict(watch) for watch in self.watches],
            "results": [dataclasses.asdict(result) for result in self.results],
            "grants": [dataclasses.asdict(grant) for grant in self.grants],
            "open_jobs": self.open_jobs,
            "surprises": self.surprises,
        }
