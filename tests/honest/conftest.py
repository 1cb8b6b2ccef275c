# SPDX-License-Identifier: Apache-2.0
"""Lets the tests import what both suites share."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "adversary"))
