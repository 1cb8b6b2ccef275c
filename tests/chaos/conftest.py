# SPDX-License-Identifier: Apache-2.0
"""The chaos suite uses the tools of the tests over the real processes."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))
