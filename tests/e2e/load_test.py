# SPDX-License-Identifier: Apache-2.0
"""A coordinator under many simulated workers and watchers: nothing is lost, whatever it
costs. What it costs is in docs/benchmarks/load.md."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(*arguments):
    """What scripts/load-test prints; 50 jobs, 20 workers, 100 watchers."""
    command = [sys.executable, ROOT / "scripts/load-test", "--bin", os.environ["MTMC_BIN"],
               "--jobs", 50, "--workers", 20, "--watchers", 100, *arguments]  # fmt: skip
    run = subprocess.run([str(a) for a in command], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(run.stdout)


def check(result):
    assert result["watchers"] == 100
    assert result["evaluations"] > 0
    assert result["ready_to_lease_ms"]["count"] > 0
    faults = ("disordered_events", "twice_finished", "repeated_leases", "errors")
    assert {fault: result[fault] for fault in faults} == dict.fromkeys(faults, 0), result


def test_events_come_once_and_work_is_leased_once_with_the_engine():
    result = load("--seconds", 4)
    check(result)
    # Nobody was away.
    assert result["breaks"] == 0


@pytest.mark.parametrize("work_ms", [0, 30])
def test_a_killed_coordinator_loses_no_lease_and_no_event(work_ms):
    result = load("--free-coder", "--work-ms", work_ms, "--seconds", 6, "--restart")
    check(result)
    assert result["restart"]["open_jobs"] > 0
    assert result["breaks"] > 0, "nobody noticed the outage"
    # Searches went on, and workers got work from the new process.
    assert "resumed_seconds" in result["restart"]
    assert result["coordinator"]["queue_wait_ms"]["count"] > 0


def test_a_load_that_cannot_begin_says_why(tmp_path):
    program = pathlib.Path(os.environ["MTMC_BIN"]).parent / "tests/mtmc-load"
    run = subprocess.run(
        [program, "--coordinator", "127.0.0.1:1", "--setup-seconds", "0.5"],
        capture_output=True, text=True, timeout=60)  # fmt: skip
    assert run.returncode == 1
    assert "not all of 100 jobs were created" in run.stderr
