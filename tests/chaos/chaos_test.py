# SPDX-License-Identifier: Apache-2.0
"""A short storm of faults over all daemons: nothing is lost or counted twice. Each run has
a seed of its own, which is printed; MTMC_CHAOS_SEED fixes it. The long one is scripts/chaos."""

import json
import os
import pathlib
import random

import processes
import pytest
import storm

SEED = os.environ.get("MTMC_CHAOS_SEED", str(random.SystemRandom().randrange(10**6)))
FAULTS = int(os.environ.get("MTMC_CHAOS_FAULTS", "25"))


def show(report):
    """What a reader of the log of CI needs, without the list of faults."""
    return json.dumps({key: value for key, value in report.items() if key != "faults"}, indent=1)


def _has(*places):
    return any(list(pathlib.Path("/").glob(place)) for place in places)


# While libfaketime moves a clock forward, calls of the gateway end by their deadline, and jobs
# with them: not looked into. clock_test.py has what is known of clocks that are set back.
LEFT_OUT = ("clock jump",)


@pytest.mark.skipif(not _has("usr/lib/postgresql/*/bin"), reason="PostgreSQL is not installed; run scripts/setup")
def test_nothing_is_lost_or_counted_twice_whatever_fails(tmp_path):
    processes.adopt_orphans()
    print(f"\nMTMC_CHAOS_SEED={SEED} MTMC_CHAOS_FAULTS={FAULTS}")
    options = storm.Options(seed=SEED, faults=FAULTS, folder=tmp_path, workers=12, rich=4, poor=2, gap=0.8,
                            drain_seconds=60, without=LEFT_OUT)  # fmt: skip

    report = storm.Run(options).run()

    print(show(report))
    assert report["violations"] == [], f"MTMC_CHAOS_SEED={SEED}; {show(report)}"
    assert len(report["faults"]) == FAULTS
    assert report["notes"]["broken_watches"] > 0, "nobody noticed a fault"
    assert report["notes"]["acknowledged"] > 0
