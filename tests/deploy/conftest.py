# SPDX-License-Identifier: Apache-2.0
"""The tests of installation use the real processes as those of tests/e2e do."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))


@pytest.fixture(scope="session")
def engine(tmp_path_factory):
    """An engine of containers with a Debian, and the archive of this build."""
    import containers
    import release

    folder = tmp_path_factory.mktemp("containers")
    with containers.Engine(folder / "engine") as running:
        running.import_base()
        running.archive = release.bundle(folder)
        yield running


@pytest.fixture(scope="session")
def images(engine):
    """The engine with all images of docker/, which take minutes."""
    engine.build_images(engine.archive, "coordinator", "policyd", "gateway", "cli", flags=("--layers",))
    # It shares nothing with the others, and layers of its size are slow.
    engine.build_images(engine.archive, "worker")
    return engine
