# SPDX-License-Identifier: Apache-2.0
"""Servers of others that mtmc works with, each a test's own, on this host. A test is
skipped where one is not installed."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess

import processes
import pytest

START_SECONDS = 60


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class S3:
    """versitygw over a folder, with one bucket. A context manager."""

    KEY, SECRET = "e2e-key", "e2e-secret-that-nobody-logs"

    def __init__(self, folder):
        # As server/s3/s3_server.cc looks for it.
        places = (os.environ.get("MTMC_VERSITYGW"), pathlib.Path.home() / "go/bin/versitygw",
                  shutil.which("versitygw"))  # fmt: skip
        found = [place for place in places if place and os.path.exists(place)]
        if not found:
            pytest.skip("versitygw is not installed; run scripts/setup on a host with Go")
        self._program = found[0]
        self.bucket = folder / "root" / "artifacts"
        self.bucket.mkdir(parents=True)
        self._log = open(folder / "versitygw.log", "ab")
        self._port = _free_port()
        self._process = None

    @property
    def address(self):
        return "s3://artifacts/mtmc"

    @property
    def variables(self):
        return {
            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{self._port}",
            "AWS_ACCESS_KEY_ID": self.KEY,
            "AWS_SECRET_ACCESS_KEY": self.SECRET,
            "AWS_REGION": "us-east-1",
        }

    def start(self):
        self._process = subprocess.Popen(
            [self._program, "--port", f"127.0.0.1:{self._port}", "posix", self.bucket.parent],
            env={**os.environ, "ROOT_ACCESS_KEY": self.KEY, "ROOT_SECRET_KEY": self.SECRET},
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
        )  # fmt: skip

        def answers():
            assert self._process.poll() is None, "versitygw ended"
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self._port)) == 0

        processes.eventually(answers, START_SECONDS, "versitygw serves")

    def kill(self):
        self._process.kill()
        self._process.wait()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()
        self._log.close()

    def blobs(self):
        """Files of the blobs below the prefix."""
        return [path for path in (self.bucket / "mtmc").rglob("*") if path.is_file()]


class Postgres:
    """A PostgreSQL server in a folder, reached by a socket there. A context manager."""

    def __init__(self, folder):
        tools = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
        if not tools:
            pytest.skip("PostgreSQL is not installed; run scripts/setup")
        self._tools = tools[-1]
        # Paths of sockets are short, and root may not serve.
        self.folder = pathlib.Path(subprocess.check_output(["mktemp", "-d", "/tmp/pg-XXXXXX"], text=True).strip())
        self._user = []
        if os.getuid() == 0:
            shutil.chown(self.folder, "nobody")
            self._user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        self._log = open(folder / "postgres.log", "ab")
        self._process = None

    def _run(self, tool, *arguments):
        subprocess.run([*self._user, self._tools / tool, *arguments], check=True,
                       cwd=self.folder, stdout=self._log, stderr=self._log)  # fmt: skip

    def __enter__(self):
        data = self.folder / "data"
        self._run("initdb", "-D", data, "-A", "trust", "-U", "mtmc", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
        self._process = subprocess.Popen(
            [*self._user, self._tools / "postgres", "-D", data, "-k", self.folder, "-c", "listen_addresses=",
             "-c", "fsync=off"],
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
        )  # fmt: skip
        ready = self.folder / ".s.PGSQL.5432"
        processes.eventually(ready.exists, START_SECONDS, "PostgreSQL serves")
        return self

    def __exit__(self, *_):
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30)
        self._log.close()
        shutil.rmtree(self.folder)

    def address(self, database="postgres"):
        return f"host={self.folder} user=mtmc dbname={database}"

    def ask(self, statements):
        """What psql prints of them: a line a row, with | between columns."""
        done = subprocess.run(
            [self._tools / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", self.address()],
            input=statements, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()
