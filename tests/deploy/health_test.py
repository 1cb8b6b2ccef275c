# SPDX-License-Identifier: Apache-2.0
"""mtmc-health asks a daemon whether it lives, and tells by its exit code."""

import os
import pathlib
import subprocess

import stack as stacks

PROGRAM = pathlib.Path(os.environ["MTMC_BIN"]) / "mtmc-health"


def health(*arguments, **options):
    return subprocess.run(
        [PROGRAM, *arguments], capture_output=True, text=True, timeout=30, check=False, **options
    )


def test_where_nothing_answers_it_fails_and_says_so():
    done = health("127.0.0.1:9")
    assert (done.returncode, done.stderr) == (1, "mtmc-health: nothing answers at 127.0.0.1:9\n")


def test_without_an_address_it_tells_its_usage():
    done = health(env={})
    assert done.returncode == 2
    assert "usage: mtmc-health HOST:PORT" in done.stderr


def test_a_daemon_that_lives_is_well(tmp_path):
    host = stacks.Host(tmp_path)
    daemon, ready = host.serve("mtmc-policyd", "--listen", "127.0.0.1:0")
    by_flag, by_variable = health(ready["http"]), health(env={"MTMC_HEALTH": ready["http"]})
    nothing = health(ready["http"], "/nothing")
    stacks.stop(daemon)
    assert (by_flag.returncode, by_flag.stdout) == (0, "ok\n")
    assert by_variable.returncode == 0
    assert nothing.returncode == 1
