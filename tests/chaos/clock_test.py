# SPDX-License-Identifier: Apache-2.0
"""An owner whose clock was an hour ahead, and is set right, goes on saying that it is there.

libfaketime has no say in how long the kernel waits, but as to a clock that is set back the
kernel does the same: a wait until a time of the wall clock lasts until that time."""

import time

import processes
import pytest
import world as worlds


def beat(world):
    return int(world.sql("SELECT beat FROM owner")[0][0])


@pytest.mark.skipif(not worlds.FAKETIME.exists(), reason="libfaketime is not installed; run scripts/setup")
def test_an_owner_goes_on_beating_after_its_clock_was_set_back(tmp_path):
    with worlds.World(tmp_path, has_worker=False, coordinators=("c0",)) as world:
        processes.eventually(lambda: beat(world) > 0, 30, "a coordinator owns the jobs")
        world.set_clock("c0", 3600)
        time.sleep(3)
        world.set_clock("c0", 0)
        time.sleep(3)
        before = beat(world)
        # Five times within --takeover-after-ms.
        time.sleep(2 * worlds.TAKEOVER_MS / 1000)
        assert beat(world) > before
