# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/operations.md, as they stand there, against a service that runs."""

import pathlib
import re
import shutil
import subprocess

import kept
import processes
import pytest
import stack as stacks

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def block(page, word):
    """The only block of commands with `word` in it."""
    found = [text for text in re.findall(r"```sh\n(.*?)```", (DOCS / page).read_text(), re.S) if word in text]
    assert len(found) == 1, f"{len(found)} blocks have '{word}'"
    return found[0]


def shell(folder, text, **variables):
    """What a block prints in `folder`, with the programs of this build at hand."""
    folder.mkdir(exist_ok=True)
    known = stacks.environment(folder, **variables)
    known["PATH"] = f"{stacks.BIN}:{known['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", text], cwd=folder, env=known, capture_output=True, text=True,
        timeout=stacks.COMMAND_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_look_shows_what_there_is_and_a_drained_worker_rests(tmp_path):
    with kept.Service(tmp_path / "a", "--data-dir", tmp_path / "data") as service:
        known = {"MTMC_ENDPOINT": service.endpoint, "http": service.http["mtmc-coordinator"]}
        workers = []

        def has_worker():
            workers[:] = service.client.call("WorkerService", "ListWorkers").workers
            return workers

        processes.eventually(has_worker, 120, "a worker is there")
        worker = workers[0].name.removeprefix("workers/")
        job = service.start_job().name.rpartition("/")[2]

        seen = shell(tmp_path / "shell", block("operations.md", "readyz"), **known)

        assert all(word in seen for word in ("ready", worker, job, 'mtmc_jobs{state="'))
        drained = shell(tmp_path / "shell", block("operations.md", "workers drain"), worker=worker, **known)
        assert "draining" in drained


@pytest.mark.skipif(not shutil.which("openssl"), reason="SKIPPED: there is no openssl")
def test_a_project_is_added_and_its_token_replaced_while_the_service_runs(host):
    place = host.folder / "shell"
    shell(place, block("access.md", "openssl req -x509"))
    made = "mtmc token create admin --role administrator --project '*' 2> admin.line; tail -n 1 admin.line > tokens"
    admin = shell(place, made)
    (place / "admin.token").write_text(admin)
    (place / "admin.token").chmod(0o400)
    flags = ("--data-dir", place / "data", "--listen", "127.0.0.1:0", "--tokens", place / "tokens",
             "--tls-cert", place / "server.pem", "--tls-key", place / "server.key")  # fmt: skip
    daemon, ready = host.serve("mtmc-coordinator", *map(str, flags))
    known = {"MTMC_ENDPOINT": f"localhost:{ready['grpc'].rpartition(':')[2]}", "MTMC_TLS_CA": "ca.pem",
             "MTMC_TOKEN_FILE": "admin.token", "tokens": "tokens"}  # fmt: skip

    def may_list(token):
        done = subprocess.run(
            [stacks.BIN / "mtmc", "--project", "speech", "jobs", "list"], cwd=place, capture_output=True, text=True,
            env={**stacks.environment(host.folder, **known), "MTMC_TOKEN_FILE": token}, check=False,
        )  # fmt: skip
        return done.returncode == 0

    try:
        shell(place, block("operations.md", "mtmc quota set speech"), **known)
        processes.eventually(lambda: may_list("carol.token"), 10, "the new line counts")
        assert "20" in shell(place, "mtmc quota get speech", **known)

        shell(place, block("operations.md", "carol.new"), **known)
        processes.eventually(lambda: not may_list("carol.token"), 10, "the old token is nobody's")
        assert may_list("carol.new") and may_list("admin.token")

        assert "notAfter=" in shell(place, block("operations.md", "s_client"), **known)
    finally:
        assert stacks.stop(daemon) == 0
