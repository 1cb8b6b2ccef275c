# SPDX-License-Identifier: Apache-2.0
"""The tests of installation use the real processes as those of tests/e2e do."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
