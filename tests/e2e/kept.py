# SPDX-License-Identifier: Apache-2.0
"""All daemons, with a coordinator whose store is a test's choice."""

import json
import urllib.error
import urllib.request

import problems
import processes
import stack as stacks

JOB_SECONDS = 300
ENDED = {stacks.CONTRACT.Job.State.Value(f"STATE_{s}") for s in ("SUCCEEDED", "FAILED", "CANCELLED")}


class Service(stacks.Daemons):
    """A context manager. `flags` and `changes` are the coordinator's."""

    def __init__(self, folder, *flags, has_worker=True, **changes):
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder)
        self._coordinator_flags = flags
        self._coordinator_changes = changes
        self._has_worker = has_worker

    def launch(self):
        listen = ("--listen", "127.0.0.1:0")
        policy = self.add("mtmc-policyd", *listen)
        gateway = self.add("mtmc-gateway", *listen)
        self.endpoint = self.add(
            "mtmc-coordinator", *listen, "--policy", policy, "--gateway", gateway,
            *self._coordinator_flags, **self._coordinator_changes,
        )  # fmt: skip
        if self._has_worker:
            self.add("mtmc-worker", "--coordinator", self.endpoint, "--scratch", self.folder / "scratch")

    def get(self, path):
        """Status and text of a path of the coordinator's HTTP side."""
        try:
            with urllib.request.urlopen(f"http://{self.http['mtmc-coordinator']}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name):
        """Sum of all series of a metric."""
        lines = (line.rsplit(" ", 1) for line in self.get("/metrics")[1].splitlines() if line.startswith(name))
        return sum(float(value) for series, value in lines if series == name or series.startswith(name + "{"))

    def num_evaluated(self, job):
        listed = self.client.call("CandidateService", "ListCandidates", parent=job, page_size=500)
        state = stacks.CONTRACT.Candidate.State.Value("STATE_EVALUATED")
        return sum(candidate.state == state for candidate in listed.candidates)

    def await_evaluated(self, job, count):
        processes.eventually(
            lambda: self.num_evaluated(job) >= count, JOB_SECONDS, f"{count} evaluations of {job}", pause=0.1
        )

    def start_job(self, number=0, trials=4, **fields):
        return self.create_job(problems.pointwise(number), **problems.quick(stacks.CONTRACT, trials=trials), **fields)

    def programs(self, job):
        """Digests of all programs of a job, and of its source."""
        listed = self.client.call("CandidateService", "ListCandidates", parent=job, page_size=500)
        digests = {candidate.program.sha256 for candidate in listed.candidates}
        return (digests | {self.job(job).problem.source.sha256}) - {""}

    def log_lines(self, program="mtmc-coordinator"):
        """Its log, where it is JSON."""
        return [json.loads(line) for line in self.log(program).splitlines() if line.startswith("{")]
