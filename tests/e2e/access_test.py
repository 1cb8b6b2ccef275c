# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/access.md: a service with TLS and tokens, from nothing. And what those
who have them may see of each other."""

import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request

import contract
import problems
import processes
import pytest
import stack as stacks

PAGE = stacks.BIN.parents[2] / "docs/access.md"


def shell(host, text, **changes):
    """Runs a block of the page in a folder of its own, beside the current one."""
    place = host.folder / "access"
    place.mkdir(exist_ok=True)
    variables = stacks.environment(host.folder, **changes)
    variables["PATH"] = f"{stacks.BIN}:{variables['PATH']}"
    return subprocess.run(
        ["bash", "-euc", text], cwd=place, env=variables, capture_output=True, text=True,
        timeout=stacks.COMMAND_SECONDS, check=False,
    )  # fmt: skip


def blocks():
    return re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.S)


def forged(jwt):
    """The same claims, with the public key's word that no signature is needed."""
    header = base64.urlsafe_b64encode(b'{"alg": "none"}').decode().rstrip("=")
    return f"{header}.{jwt.split('.')[1]}."


@pytest.mark.skipif(not shutil.which("openssl"), reason="SKIPPED: there is no openssl")
def test_the_page_makes_a_service_that_knows_its_callers(host):
    certificates, tokens, commands, issuer, jwt_commands = blocks()
    for block in (certificates, tokens, issuer):
        done = shell(host, block)
        assert done.returncode == 0, done.stderr
    place = host.folder / "access"
    secrets = [(place / name).read_text().strip() for name in ("alice.token", "machines.token", "bob.jwt")]

    # The second command is the first with what JWT take.
    first, second = [next(line for line in block.splitlines() if line.startswith("mtmc-coordinator"))
                     for block in (commands, jwt_commands)]  # fmt: skip
    assert set(first.split()) < set(second.split())
    flags = second.split()[1:]
    flags[flags.index("--listen") + 1] = "127.0.0.1:0"
    flags = [str(place / flag) if (place / flag).exists() or flag in ("data", "audit.jsonl") else flag
             for flag in flags]  # fmt: skip
    daemon, ready = host.serve("mtmc-coordinator", *flags)
    endpoint = f"localhost:{ready['grpc'].rpartition(':')[2]}"
    known = dict(MTMC_ENDPOINT=endpoint, MTMC_TLS_CA="ca.pem", MTMC_TOKEN_FILE="alice.token")
    try:
        mine = shell(host, "mtmc -o json --project vision jobs list", **known)
        assert mine.returncode == 0, mine.stderr

        other = shell(host, "mtmc --project speech jobs list", **known)
        assert "ROLE_MISSING" in other.stderr
        machine = shell(host, "mtmc --project vision jobs list", **{**known, "MTMC_TOKEN_FILE": "machines.token"})
        assert "ROLE_MISSING" in machine.stderr
        nobody = shell(host, "mtmc --project vision jobs list", **{**known, "MTMC_TOKEN_FILE": None})
        assert "TOKEN_MISSING" in nobody.stderr
        plain = shell(host, "mtmc --project vision jobs list", MTMC_ENDPOINT=endpoint)
        assert plain.returncode != 0

        # Who has a JWT of the issuer may do what it says, and nothing else.
        bob = {**known, "MTMC_TOKEN_FILE": "bob.jwt"}
        seen = shell(host, "mtmc -o json --project vision jobs list", **bob)
        assert seen.returncode == 0, seen.stderr
        cancel = shell(host, "mtmc --project vision jobs cancel j-none", **bob)
        assert "ROLE_MISSING" in cancel.stderr and "jwt:bob" in cancel.stderr
        (place / "forged.jwt").write_text(forged((place / "bob.jwt").read_text()))
        forgery = shell(host, "mtmc --project vision jobs list", **{**known, "MTMC_TOKEN_FILE": "forged.jwt"})
        assert "TOKEN_INVALID" in forgery.stderr
        # Keys of another issuer, without a restart.
        keys = (place / "jwks.json").read_text()
        done = shell(host, issuer.replace("bob.jwt", "other.jwt"))
        assert done.returncode == 0, done.stderr
        other_bob = {**known, "MTMC_TOKEN_FILE": "other.jwt"}
        def lets_in():
            return shell(host, "mtmc --project vision jobs list", **other_bob).returncode == 0
        processes.eventually(lets_in, 10, "the new keys are in use")
        gone = shell(host, "mtmc --project vision jobs list", **bob)
        assert "TOKEN_INVALID" in gone.stderr
        (place / "jwks.json").write_text(keys)

        # REST has the same judge.
        url = f"http://{ready['http']}/v1/projects/vision/jobs"
        rest = shell(host, f'curl -s -o /dev/null -w "%{{http_code}}" {url}')
        assert rest.stdout == "401", rest.stderr
        rest = shell(host, f'curl -s -H "Authorization: Bearer $(cat alice.token)" {url}')
        assert json.loads(rest.stdout) == {}
        # And takes HTTPS at the same port, with the certificate of the daemon.
        https = url.replace("http://127.0.0.1", "https://localhost")
        rest = shell(host, f'curl -s --cacert ca.pem -H "Authorization: Bearer $(cat alice.token)" {https}')
        assert json.loads(rest.stdout) == {}, rest.stderr

        cancelled = shell(host, "mtmc --project vision jobs cancel j-none", **known)
        assert "JOB_NOT_FOUND" in cancelled.stderr
        metrics = shell(host, f"curl -s http://{ready['http']}/metrics").stdout
        assert "grpc_server_handled_total" in metrics
    finally:
        assert stacks.stop(daemon) == 0
    audit = (place / "audit.jsonl").read_text()
    entries = [json.loads(line) for line in audit.splitlines()]
    assert [(e["who"], e["status"]) for e in entries] == [
        ("jwt:bob", "PERMISSION_DENIED"), ("alice", "NOT_FOUND")
    ]  # fmt: skip
    # A token is where its owner put it, and nowhere else.
    outputs = [audit, metrics, host.log("mtmc-coordinator"), other.stderr, cancelled.stderr]
    stored = [path.read_bytes().decode(errors="replace") for path in (place / "data").rglob("*") if path.is_file()]
    for secret in secrets:
        assert secret and not any(secret in text for text in outputs + stored)


def tokens(host, **roles):
    """A file of tokens, and a file with each token by its name. A role is `ROLE` or
    `ROLE PROJECT`."""
    lines = []
    for name, role in roles.items():
        role, *project = role.split()
        flags = ["--role", role] + [flag for one in project for flag in ("--project", one)]
        made = json.loads(host.run("-o", "json", "token", "create", name, *flags).stdout)
        host.write(f"{name}.token", made["token"])
        lines.append(made["line"])
    return host.write("tokens", "\n".join(lines) + "\n")


def test_a_worker_has_its_name_to_itself(host):
    audit = host.folder / "audit.jsonl"
    coordinator = ["--data-dir", host.folder / "data", "--listen", "127.0.0.1:0",
                   "--tokens", tokens(host, one="worker", two="worker", root="administrator"),
                   "--audit-log", audit]  # fmt: skip
    daemon, ready = host.serve("mtmc-coordinator", *coordinator)
    endpoint = ready["grpc"]

    def work(token):
        return host.start("--coordinator", endpoint, "--http", "127.0.0.1:0", "--name", "gpu-0",
                          "--token-file", host.folder / f"{token}.token",
                          program="mtmc-worker", log=f"{token}.log")  # fmt: skip

    def refused():
        lines = audit.read_text().splitlines() if audit.exists() else []
        return [entry for entry in map(json.loads, lines) if entry["method"].endswith("/Synchronize")]

    def state():
        listed = host.run("-o", "json", "--endpoint", endpoint, "workers", "list",
                          MTMC_TOKEN_FILE=str(host.folder / "root.token"))  # fmt: skip
        assert listed.returncode == 0, listed.stderr
        return [worker["state"] for worker in json.loads(listed.stdout).get("workers", [])]

    first = work("one")
    try:
        processes.eventually(lambda: state() == ["STATE_IDLE"], stacks.START_SECONDS, "the worker is there")
        second = work("two")
        try:
            processes.eventually(refused, stacks.START_SECONDS, "the second is refused")
            assert {(e["who"], e["resource"], e["status"]) for e in refused()} == {
                ("two", "workers/gpu-0", "PERMISSION_DENIED")
            }
            assert "WORKER_NAME_TAKEN" in (host.folder / "two.log").read_text()
            # Killed: nobody says that the name is free, and so it is once its time has passed.
            first.kill()
            first.wait()
            before = len(refused())
            processes.eventually(lambda: state() == ["STATE_IDLE"] and "answers again" in (host.folder / "two.log").read_text(),
                                 60, "the second has the name")  # fmt: skip
            assert len(refused()) >= before
        finally:
            assert stacks.stop(second) == 0
    finally:
        if first.poll() is None:
            stacks.stop(first)
        assert stacks.stop(daemon) == 0


class Projects(stacks.Daemons):
    """All daemons, with a coordinator that asks who calls: `p` and `q` submit to the projects
    of their names, `root` may do everything. A context manager."""

    def __init__(self, folder, *flags):
        super().__init__(folder)
        self._flags = flags
        self._clients = {}

    def launch(self):
        listen = ("--listen", "127.0.0.1:0")
        known = tokens(self, p="submitter p", q="submitter q", root="administrator *", machine="worker")
        policy = self.add("mtmc-policyd", *listen)
        gateway = self.add("mtmc-gateway", *listen)
        self.endpoint = self.add("mtmc-coordinator", *listen, "--policy", policy, "--gateway", gateway,
                                 "--data-dir", self.folder / "data", "--tokens", known, *self._flags)  # fmt: skip
        self.add("mtmc-worker", "--coordinator", self.endpoint, "--scratch", self.folder / "scratch",
                 "--token-file", self.folder / "machine.token")  # fmt: skip

    def __exit__(self, *error):
        for client in self._clients.values():
            client.close()
        super().__exit__(*error)

    def token(self, who):
        return (self.folder / f"{who}.token").read_text().strip()

    def of(self, who):
        if who not in self._clients:
            self._clients[who] = contract.Client(stacks.CONTRACT, self.endpoint, self.token(who))
        return self._clients[who]

    def download(self, who, digest):
        parts = self.of(who).stream("ArtifactService", "DownloadArtifact", contract.CALL_SECONDS, digest=digest)
        return b"".join(part.chunk for part in parts)

    def get(self, who, digest):
        """Its status over REST."""
        url = (f"http://{self.http['mtmc-coordinator']}/v1/artifacts/{digest.sha256}"
               f"?digest.size_bytes={digest.size_bytes}")  # fmt: skip
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {self.token(who)}"})
        try:
            with urllib.request.urlopen(request, timeout=contract.CALL_SECONDS) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def is_missing(self, who, digest):
        return bool(self.of(who).call("ArtifactService", "FindMissingArtifacts", digests=[digest]).missing)

    def create(self, who, source):
        job = stacks.CONTRACT.Job(problem=stacks.CONTRACT.Problem(display_name="problem", source=source),
                                  **problems.quick(stacks.CONTRACT, trials=1))  # fmt: skip
        return self.of(who).call("JobService", "CreateJob", parent=f"projects/{who}", job=job,
                                 request_id=contract.new_request_id()).job  # fmt: skip

    def run_job(self, who, source):
        """All candidates of a job of `source`, which its project has."""
        name = self.create(who, source).name
        state = stacks.CONTRACT.Job.State.Value("STATE_SUCCEEDED")
        list(self.of(who).events(name, seconds=stacks.COMMAND_SECONDS))
        assert self.of(who).call("JobService", "GetJob", name=name).job.state == state
        return list(self.of(who).call("CandidateService", "ListCandidates", parent=name, page_size=500).candidates)


def digest_of(data):
    return stacks.CONTRACT.Digest(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))


def refusal(call, digest):
    """Code, reason and message of the error, without the digest that was asked for."""
    with pytest.raises(contract.CallError) as error:
        call()
    return error.value.code, error.value.reason, error.value.message.replace(digest.sha256, "DIGEST")


def test_a_project_has_its_artifacts_and_evaluations_to_itself(tmp_path):
    data = problems.pointwise().encode()
    source, absent = digest_of(data), digest_of(bytes(len(data)))
    with Projects(tmp_path) as service:
        service.of("p").upload(data, source)
        candidates = service.run_job("p", source)
        program = candidates[0].program
        assert program.sha256

        for digest in (source, program):
            for reader in ("p", "root"):
                assert digest_of(service.download(reader, digest)) == digest
                assert service.get(reader, digest) == 200
                assert not service.is_missing(reader, digest)
            assert service.is_missing("q", digest)
            assert service.get("q", digest) == service.get("q", absent) == 404
            assert refusal(lambda: service.download("q", digest), digest) == refusal(
                lambda: service.download("q", absent), absent
            )
        assert refusal(lambda: service.create("q", source), source) == refusal(
            lambda: service.create("q", absent), absent
        )

        # Who has the bytes has the blob, and nothing of what was made from it.
        service.of("q").upload(data, source)
        assert service.download("q", source) == data
        assert not service.is_missing("q", source)
        assert service.is_missing("q", program)
        theirs = service.run_job("q", source)
        assert theirs[0].program == program
        assert not theirs[0].evaluation.is_cached
        assert service.download("q", program) == service.download("p", program)
    assert service.exit_codes == [0] * 4

    # The administrator's switch, on the same store.
    with Projects(tmp_path, "--share-across-projects") as service:
        only = next(c.program for c in candidates if c.program.sha256 and c.program != program)
        assert digest_of(service.download("q", only)) == only
        data = problems.pointwise(1).encode()
        source = digest_of(data)
        assert service.is_missing("q", source)
        service.of("p").upload(data, source)
        assert not service.is_missing("q", source)
        assert service.get("q", source) == 200
        assert not service.run_job("p", source)[0].evaluation.is_cached
        assert service.run_job("q", source)[0].evaluation.is_cached
    assert service.exit_codes == [0] * 4


def handled(service, code):
    """How often each method of the coordinator was answered with `code`."""
    url = f"http://{service.http['mtmc-coordinator']}/metrics"
    with urllib.request.urlopen(url, timeout=contract.CALL_SECONDS) as answer:
        text = answer.read().decode()
    lines = re.findall(r"^grpc_server_handled_total{(.*)} (\S+)$", text, re.M)
    labels = [(dict(re.findall(r'(\w+)="([^"]*)"', line)), float(count)) for line, count in lines]
    return {label["grpc_method"]: count for label, count in labels if label["grpc_code"] == code}


def test_who_calls_too_often_is_slowed_down_and_workers_are_not(tmp_path):
    calls = 4
    with Projects(tmp_path, "--requests-per-second", "1") as service:
        known = dict(MTMC_ENDPOINT=service.endpoint, MTMC_TOKEN_FILE=str(tmp_path / "p.token"))
        # A job from its upload to its winner, by a client that calls as often as it likes.
        problem = service.write("problem.py", problems.pointwise())
        done = service.run("-o", "json", "--project", "p", "optimize", problem, "--trials", "2", **known)
        assert done.returncode in (0, 4), done.stderr
        assert json.loads(done.stdout)["state"] == "STATE_SUCCEEDED"

        began = time.monotonic()
        listing = [service.start("--project", "p", "jobs", "list", log=f"list-{i}.log", **known) for i in range(calls)]
        codes = [process.wait(stacks.COMMAND_SECONDS) for process in listing]
        assert codes == [0] * calls, [(tmp_path / f"list-{i}.log").read_text() for i in range(calls)]
        assert time.monotonic() - began >= calls - 2

        refused = handled(service, "RESOURCE_EXHAUSTED")
        assert refused.pop("ListJobs") > 0
        assert "Synchronize" not in refused
        # The worker made more calls than its name might, had it been anybody else's.
        assert handled(service, "OK")["Synchronize"] > 10
        # Who does not wait is told.
        service.of("q").call("JobService", "ListJobs", parent="projects/q")
        with pytest.raises(contract.CallError) as error:
            for _ in range(3):
                service.of("q").call("JobService", "ListJobs", parent="projects/q")
        assert (error.value.code.name, error.value.reason) == ("RESOURCE_EXHAUSTED", "REQUEST_RATE_EXCEEDED")
    assert service.exit_codes == [0] * 4


def test_a_listener_that_others_reach_is_refused_without_tls(host):
    data = host.folder / "data"
    done = host.run("--data-dir", data, "--listen", "0.0.0.0:0", "--http", "", program="mtmc-coordinator")
    assert done.returncode != 0
    assert "LISTENER_INSECURE" in done.stderr
    assert "--insecure" in done.stderr

    done = host.run("--data-dir", data, "--listen", "127.0.0.1:0", "--http", "0.0.0.0:0", program="mtmc-coordinator")
    assert done.returncode != 0
    assert "HTTP_INSECURE" in done.stderr


@pytest.mark.parametrize("program", ["mtmc-coordinator", "mtmc-gateway", "mtmc-policyd"])
def test_a_daemon_that_dies_leaves_no_picture_of_its_memory(host, program):
    flags = ["--data-dir", host.folder / "data"] if program == "mtmc-coordinator" else []
    daemon, _ = host.serve(program, "--listen", "127.0.0.1:0", *flags, OPENAI_API_KEY="sk-planted")
    limits = pathlib.Path(f"/proc/{daemon.pid}/limits").read_text()
    assert re.search(r"Max core file size\s+0\s+0\s", limits), limits

    os.kill(daemon.pid, signal.SIGSEGV)

    died = os.waitid(os.P_PID, daemon.pid, os.WEXITED | os.WNOWAIT)
    daemon.wait()
    assert died.si_status == signal.SIGSEGV
    # With a dump it would be CLD_DUMPED.
    assert died.si_code == os.CLD_KILLED
    assert not list(host.work.glob("core*"))
