# SPDX-License-Identifier: Apache-2.0
"""The archive of this build, as scripts/bundle writes it."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["MTMC_BIN"]).parent
ARCHIVE = "mtmc-0.1.0-linux-x86_64.tar.xz"


def bundle(folder):
    """Writes the archive into `folder` and returns its path."""
    archive = pathlib.Path(folder) / ARCHIVE
    subprocess.run(
        [ROOT / "scripts/bundle", archive, BUILD],
        env={**os.environ, "XZ_OPT": "-0 -T0"}, check=True, timeout=300, capture_output=True, text=True,
    )  # fmt: skip
    return archive
