# SPDX-License-Identifier: Apache-2.0
"""Claims about the table of operators that programs may call."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_table_is_what_the_installed_pytorch_says():
    script = ROOT / "scripts/operators"

    check = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )

    assert check.returncode == 0, check.stderr
