# SPDX-License-Identifier: Apache-2.0
"""The real system in a folder of its own: `mtmc up` with every daemon, on free
ports, with its store, runtime folder and caches below one temporary folder."""

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys

import contract
import processes

START_SECONDS = 180
STOP_SECONDS = 60
COMMAND_SECONDS = 600

BIN = pathlib.Path(os.environ["MTMC_BIN"])
PYTHON = os.environ.get("MTMC_PYTHON", sys.executable)
CONTRACT = contract.Contract(BIN.parent / "share/mtmc/mtmc.binpb")

# What a test's own host says about mtmc must not reach the programs.
_FOREIGN = ("MTMC_", "OPENAI_", "OTEL_", "XDG_")


def environment(folder, **changes):
    """Variables of a program that keeps all its files below `folder`. A change to
    None removes one."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith(_FOREIGN)}
    for name in ("RUNTIME", "DATA", "CACHE", "CONFIG"):
        variables[f"MTMC_{name}_DIR"] = str(folder / name.lower())
    variables.update(MTMC_PYTHON=PYTHON, HOME=str(folder), CI="1")
    variables.update(changes)
    return {k: v for k, v in variables.items() if v is not None}


def confirmed(events):
    """Names of the candidates that were evaluated without what is asked of winners, and once more with it."""
    evaluated = CONTRACT.Candidate.State.Value("STATE_EVALUATED")
    deferred, names = set(), []
    for candidate in (event.candidate for event in events if event.candidate.state == evaluated):
        if candidate.name in deferred and not candidate.evaluation.skipped_confirmation:
            names.append(candidate.name)
        if candidate.evaluation.skipped_confirmation:
            deferred.add(candidate.name)
    return names


class Host:
    """A folder that plays a machine: programs see no other mtmc files.

    `work` is the current folder of every program; tests look there for files
    that should not be."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.work = self.folder / "work"
        self.work.mkdir(parents=True, exist_ok=True)

    def run(self, *command, seconds=COMMAND_SECONDS, program="mtmc", **changes):
        """Runs a program to its end; `changes` are environment variables."""
        return subprocess.run(
            [BIN / program, *map(str, command)],
            cwd=self.work,
            env=environment(self.folder, **changes),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def start(self, *command, program="mtmc", log="program.log", **changes):
        """Starts a program whose output goes to `log` in this host's folder."""
        with open(self.folder / log, "ab") as output:
            return subprocess.Popen(
                [BIN / program, *map(str, command)],
                cwd=self.work,
                env=environment(self.folder, **changes),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def serve(self, program, *flags, **changes):
        """Starts a daemon on free ports; returns it with what its ready file says."""
        ready = self.folder / f"{program}.ready"
        ready.unlink(missing_ok=True)
        daemon = self.start(
            "--ready-file", ready, "--http", "127.0.0.1:0", *flags,
            program=program, log=f"{program}.log", **changes,
        )  # fmt: skip

        def look():
            assert daemon.poll() is None, f"{program} exited with {daemon.returncode}: {self.log(program)}"
            return ready.exists() and json.loads(ready.read_text())

        return daemon, processes.eventually(look, START_SECONDS, f"{program} serves")

    def log(self, program):
        return (self.folder / f"{program}.log").read_text(errors="replace")

    def write(self, name, text):
        """A file outside of the current folder."""
        path = self.folder / name
        path.write_text(text)
        return path


def stop(process, seconds=STOP_SECONDS):
    """Asks a process to end and waits for it; returns its exit code."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


class Stack(Host):
    """`mtmc up` and a client of its coordinator. A context manager."""

    def __init__(self, folder, *flags, **changes):
        super().__init__(folder)
        self._flags = flags
        self._changes = changes

    def __enter__(self):
        self.process = self.start(
            "--quiet", "up", "--listen", "127.0.0.1:0", "--data-dir", self.folder / "store", *self._flags,
            log="up.log", **self._changes,
        )  # fmt: skip
        stack_file = self.folder / "runtime" / "stack.json"

        def look():
            assert self.process.poll() is None, f"mtmc up exited: {self.log('up')}"
            return stack_file.exists()

        processes.eventually(look, START_SECONDS, "the stack serves")
        self.endpoint = json.loads(stack_file.read_text())["endpoint"]
        self.client = contract.Client(CONTRACT, self.endpoint)
        return self

    def __exit__(self, *_):
        self.client.close()
        self.exit_code = stop(self.process)

    def daemon_log(self, name):
        return (self.folder / "store/logs" / f"{name}.log").read_text(errors="replace")

    def http_endpoints(self):
        """Metrics addresses by daemon, from the table that `mtmc up` prints."""
        lines = [line.split() for line in self.log("up").splitlines()]
        return {line[0]: line[1].removesuffix("/metrics") for line in lines
                if len(line) == 2 and line[1].endswith("/metrics")}  # fmt: skip

    def processes(self, name=None):
        """Living processes of the stack, or those of one name."""
        assert self.process.poll() is None, f"mtmc up ended with {self.process.returncode}"
        below = processes.descendants(self.process.pid)
        return [process for process in below if name in (None, process.name)]

    # Commands and calls.

    def json(self, *command, expect=0, **options):
        """Runs `mtmc --output json ...` and returns what it printed."""
        done = self.run("--output", "json", *command, **options)
        assert done.returncode == expect, f"exit code {done.returncode}: {done.stderr}"
        return json.loads(done.stdout)

    def upload(self, text):
        data = text.encode()
        digest = CONTRACT.Digest(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
        return self.client.upload(data, digest)

    def create_job(self, source, name="problem", request_id=None, **fields):
        """Creates a job from source text; `fields` are fields of Job."""
        problem = CONTRACT.Problem(display_name=name, source=self.upload(source))
        return self.client.call(
            "JobService",
            "CreateJob",
            parent="projects/default",
            job=CONTRACT.Job(problem=problem, **fields),
            request_id=request_id or contract.new_request_id(),
        ).job

    def job(self, name):
        return self.client.call("JobService", "GetJob", name=name).job

    def failures(self, job):
        """What went wrong with the candidates of a job, each text once."""
        listed = self.client.call("CandidateService", "ListCandidates", parent=job, page_size=500)
        return sorted({c.evaluation.failure.message for c in listed.candidates} - {""})

    def await_job(self, name, seconds):
        """The job once it has ended."""
        ended = {CONTRACT.Job.State.Value(f"STATE_{s}") for s in ("SUCCEEDED", "FAILED", "CANCELLED")}

        def look():
            job = self.job(name)
            return job if job.state in ended else None

        return processes.eventually(look, seconds, f"{name} ends", pause=0.2)

    def event_log(self, name, seconds=COMMAND_SECONDS):
        """All events of a job that has ended or will within `seconds`."""
        return list(self.client.events(name, seconds=seconds))


class Daemons(Stack):
    """As a Stack, of daemons that `launch` starts one by one on free ports, and leaves with
    the coordinator's address in `endpoint`; `http` has their addresses by name."""

    def __init__(self, folder):
        super().__init__(folder)
        self._daemons = []
        self.http = {}

    def launch(self):
        raise NotImplementedError

    def add(self, program, *flags, **changes):
        """Starts a daemon; its gRPC address, if it serves calls."""
        daemon, ready = self.serve(program, *flags, **changes)
        self._daemons.append(daemon)
        self.http[program] = ready["http"]
        return ready["grpc"]

    def __enter__(self):
        try:
            self.launch()
        except BaseException:
            self._stop()
            raise
        self.client = contract.Client(CONTRACT, self.endpoint)
        return self

    def __exit__(self, *_):
        self.client.close()
        self._stop()

    def _stop(self):
        self.exit_codes = [stop(daemon) for daemon in reversed(self._daemons)]
