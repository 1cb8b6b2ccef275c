# SPDX-License-Identifier: Apache-2.0
"""A daemon whose clock was an hour ahead, and is set right, serves on: an owner says that it is
there, calls are answered. It begins anew for it, in the same process.

libfaketime has no say in how long the kernel waits, but as to a clock that is set back the
kernel does the same: a wait until a time of the wall clock lasts until that time."""

import time

import contract
import processes
import pytest
import world as worlds


def beat(world):
    return int(world.sql("SELECT beat FROM owner")[0][0])


needs_faketime = pytest.mark.skipif(
    not worlds.FAKETIME.exists(), reason="libfaketime is not installed; run scripts/setup"
)


@needs_faketime
def test_an_owner_goes_on_beating_after_its_clock_was_set_back(tmp_path):
    with worlds.World(tmp_path, has_worker=False, coordinators=("c0",)) as world:
        processes.eventually(lambda: beat(world) > 0, 30, "a coordinator owns the jobs")
        world.set_clock("c0", 3600)
        time.sleep(3)
        world.set_clock("c0", 0)
        processes.eventually(lambda: has_begun_anew(world), 30, "it begins anew")
        # It counts from one again, once what it was before is out of date.
        processes.eventually(lambda: goes_on(world), 30, "a coordinator owns the jobs again")
        assert goes_on(world)


def has_begun_anew(world):
    return "begins anew" in (world.folder / "c0.log").read_text()


def goes_on(world):
    """Whether the owner has beaten once more; it does five times within --takeover-after-ms."""
    before = beat(world)
    time.sleep(2 * worlds.TAKEOVER_MS / 1000)
    return beat(world) > before


def lists_jobs(client):
    try:
        client.call("JobService", "ListJobs", seconds=2, parent="projects/any")
    except contract.CallError:
        return False
    return True


@needs_faketime
def test_calls_are_answered_after_a_clock_was_set_back(tmp_path):
    with worlds.World(tmp_path, has_worker=False, coordinators=("c0",)) as world:
        pid = world.parts["c0"].pid
        client = worlds.Client(world.endpoint("c0"))
        processes.eventually(lambda: lists_jobs(client), 30, "a call is answered")
        world.set_clock("c0", 3600)
        time.sleep(3)
        assert lists_jobs(client)
        world.set_clock("c0", 0)
        time.sleep(3)
        # On the connection of before and on a new one, and not only once.
        for one in (client, worlds.Client(world.endpoint("c0"))):
            processes.eventually(lambda one=one: lists_jobs(one), 10, "a call is answered")
        time.sleep(3)
        assert lists_jobs(client)
        assert world.parts["c0"].pid == pid
        assert "begins anew" in (tmp_path / "c0.log").read_text()
