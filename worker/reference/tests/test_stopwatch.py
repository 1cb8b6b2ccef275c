# SPDX-License-Identifier: Apache-2.0
"""The program that says where the time of verification goes."""

import subprocess
import sys

from conftest import PACKAGE


def test_every_part_and_every_workload_is_timed(write_problem):
    path = write_problem("return torch.tanh(self.n(x))", init="self.n = nn.BatchNorm1d(16)")
    command = [sys.executable, "-m", "mtmc_reference.stopwatch", str(path), "--candidates", "2"]

    run = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[0] == "scans by operators are right"
    parts = {line.split("  ")[0] for line in lines}
    assert {"draw", "change: ramps", "strict run", "spread", "publish"} <= parts
    assert {"scan", "spread", "allclose", "near", "load", "open the outputs"} <= parts
    # Three seeds, the distributions that change something here, and all together. A mixture that
    # the reference does not bear is dropped.
    assert sum("candidate 2" in line for line in lines) - (3 + 15 + 1) in (0, -1)
