# SPDX-License-Identifier: Apache-2.0
"""The tests of installation use the real processes as those of tests/e2e do."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))


@pytest.fixture(scope="session")
def engine(tmp_path_factory):
    """An engine of containers with the images of this build, and the archive that they were made from."""
    import containers
    import release

    folder = tmp_path_factory.mktemp("containers")
    with containers.Engine(folder / "engine") as running:
        running.import_base()
        running.archive = release.bundle(folder)
        running.build_images(running.archive, flags=("--layers",))
        yield running
