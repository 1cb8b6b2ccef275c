# SPDX-License-Identifier: Apache-2.0
"""deploy/slurm/mtmc-worker.sbatch without a Slurm: programs that only note how they are called stand in for
the worker and for Slurm's own (slurm_test.py has real ones)."""

import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "deploy/slurm/mtmc-worker.sbatch"
SECONDS = 30

# Serves at a port once it is called, until it is told to end.
WORKER = """#!/usr/bin/env bash
printf '%s\\n' "$@" > "$HOME/arguments"
trap 'exit 0' TERM
while [ $# -gt 0 ]; do
  [ "$1" != --ready-file ] || printf '{"grpc": "", "http": "0.0.0.0:41234"}\\n' > "$2"
  shift
done
while :; do sleep 0.1; done
"""


class Site:
    def __init__(self, folder):
        self.folder = folder
        self.targets = folder / "targets"
        for place in ("bin", "scratch", "targets"):
            (folder / place).mkdir()
        self.program("mtmc-worker", WORKER)
        self.program("squeue", "#!/bin/sh\necho RUNNING\n")
        self.program("scontrol", '#!/bin/sh\necho "$@" > "$HOME/requeued"\n')

    def program(self, name, text):
        path = self.folder / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def start(self, settings=""):
        file = self.folder / "settings"
        file.write_text(
            f"MTMC_RELEASE={self.folder}\nMTMC_PYTHON=python3\nMTMC_ENDPOINT=service1:50151\n"
            f"TMPDIR={self.folder}/scratch\n{settings}"
        )
        return subprocess.Popen(
            ["bash", SCRIPT, file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={
                "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "HOME": str(self.folder), "SLURM_JOB_ID": "17",
                "SLURM_ARRAY_JOB_ID": "14", "SLURM_ARRAY_TASK_ID": "3", "SLURM_CLUSTER_NAME": "CI",
                "SLURMD_NODENAME": "gpu1",
            },
        )  # fmt: skip

    def arguments(self):
        return self.await_file(self.folder / "arguments").split("\n")

    @staticmethod
    def await_file(path):
        deadline = time.monotonic() + SECONDS
        while not (path.exists() and path.read_text()):
            assert time.monotonic() < deadline, f"{path.name} is not there"
            time.sleep(0.05)
        return path.read_text()


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def end(process):
    """As Slurm warns: the script alone is told."""
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, output
    return output


def test_prometheus_is_told_where_a_worker_is_as_long_as_it_runs(site):
    process = site.start(f"MTMC_TARGETS={site.targets}\n")
    told = site.await_file(site.targets / "slurm-ci-14-3.json")
    arguments = site.arguments()

    output = end(process)

    assert json.loads(told) == [{"targets": ["gpu1:41234"]}]
    assert arguments[arguments.index("--http") + 1] == "0.0.0.0:0"
    assert "back into the queue" in output and (site.folder / "requeued").read_text() == "requeue 14_3\n"
    assert list(site.targets.iterdir()) == [] and list((site.folder / "scratch").iterdir()) == []


@pytest.mark.parametrize("settings, http", [("", ""), ("MTMC_HTTP=10.0.0.7:9154\n", "10.0.0.7:9154")])
def test_without_a_folder_for_prometheus_a_worker_serves_what_the_settings_say(site, settings, http):
    process = site.start(settings)
    arguments = site.arguments()

    end(process)

    assert arguments[arguments.index("--http") + 1] == http and list(site.targets.iterdir()) == []
