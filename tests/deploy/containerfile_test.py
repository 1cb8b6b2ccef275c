# SPDX-License-Identifier: Apache-2.0
"""docker/Containerfile, as a text: what can be said of the images before they are built."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE = ROOT / "docker/Containerfile"
TEXT = FILE.read_text()
ROLES = ("coordinator", "policyd", "gateway", "cli", "worker")


def stage(name):
    """Lines of a stage, after those of what it begins with."""
    found = re.search(rf"^FROM (\S+) AS {name}\n(.*?)(?=^FROM |\Z)", TEXT, re.M | re.S)
    base, own = found.groups()
    return own if base in ("scratch", "${BASE}") else stage(base) + own


def test_the_linter_finds_nothing():
    hadolint = shutil.which("hadolint", path=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}")
    if hadolint is None:
        pytest.skip("there is no hadolint; run scripts/setup")
    files = [FILE, ROOT / "tests/deploy/systemd/Containerfile"]
    done = subprocess.run([hadolint, *files], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("role", ROLES)
def test_an_image_begins_with_nothing_and_its_last_user_is_nobody(role):
    lines = stage(role)
    assert re.search(r"^FROM scratch AS common$", TEXT, re.M)
    assert re.findall(r"^USER (\S+)$", lines, re.M) == ["65532:65532"]
    assert "RUN " not in lines


@pytest.mark.parametrize("role", ROLES)
def test_an_image_says_what_it_is(role):
    labels = set(re.findall(r"org\.opencontainers\.image\.(\w+)=", stage(role)))
    assert labels >= {"title", "description", "version", "revision", "licenses", "vendor"}


@pytest.mark.parametrize("role", [role for role in ROLES if role != "cli"])
def test_a_daemon_tells_its_health_where_it_serves_it(role):
    lines = stage(role)
    port = re.search(r"MTMC_HEALTH=127\.0\.0\.1:(\d+)", lines).group(1)
    assert re.search(rf"^EXPOSE .*\b{port}$", lines, re.M)
    assert re.search(r'^HEALTHCHECK .* CMD \["/opt/mtmc/bin/mtmc-health"\]$', lines, re.M)
