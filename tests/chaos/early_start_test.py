# SPDX-License-Identifier: Apache-2.0
"""A coordinator that is started before its database waits for it, as after a power cut."""

import signal
import time

import processes
import world as worlds


def test_a_coordinator_that_is_started_before_its_database_waits_for_it(tmp_path):
    with worlds.World(tmp_path, has_worker=False, coordinators=("c0",)) as world:
        coordinator, postgres = world.parts["c0"], world.parts["postgres"]
        coordinator.take_down()
        postgres.take_down(signal.SIGINT)
        coordinator.start()
        log = world.folder / "c0.log"
        processes.eventually(lambda: "waits for the store" in log.read_text(), 30, "it says what it waits for")
        time.sleep(1)
        postgres.start()
        processes.eventually(lambda: world.is_ready("c0"), 30, "it serves")
        assert coordinator.exits == []
