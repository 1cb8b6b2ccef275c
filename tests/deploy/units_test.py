# SPDX-License-Identifier: Apache-2.0
"""The systemd units are right, hardened, and call programs by flags that they have."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNITS = ROOT / "deploy/systemd"
BIN = pathlib.Path(os.environ["MTMC_BIN"])

SERVICES = sorted(path.name for path in UNITS.glob("*.service"))
# Tenths; docs/deploy/systemd.md says what a worker needs.
MOST_EXPOSURE = {"mtmc-worker@.service": 30}

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze"
)


def analyze(folder, *command):
    """systemd-analyze with the units of `folder` before the host's."""
    return subprocess.run(
        ["systemd-analyze", *command],
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:", "SYSTEMD_COLORS": "0"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture
def units(tmp_path):
    """The units, as an installation of this build has them."""
    folder = tmp_path / "units"
    shutil.copytree(UNITS, folder)
    for path in folder.glob("*.service"):
        path.write_text(path.read_text().replace("/opt/mtmc/current/bin", str(BIN)))
    return folder


def command_of(service):
    line = re.search(r"^ExecStart=/opt/mtmc/current/bin/(\S+)(.*)$", (UNITS / service).read_text(), re.M)
    return line.group(1), re.findall(r"--[a-z-]+", line.group(2))


@needs_systemd
def test_systemd_finds_no_fault_with_the_units(units):
    instances = [name.replace("@.", "@0.") for name in SERVICES]
    # An unknown key only warns.
    done = analyze(units, "verify", "--man=no", "--recursive-errors=no", *instances, "mtmc.target")
    assert (done.returncode, done.stdout) == (0, "")


@needs_systemd
@pytest.mark.parametrize("service", SERVICES)
def test_no_service_is_more_exposed_than_it_must_be(units, service):
    threshold = MOST_EXPOSURE.get(service, 15)
    done = analyze(units, "security", "--offline=true", f"--threshold={threshold}", units / service)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_starts_its_program_with_flags_that_it_has(service):
    program, flags = command_of(service)
    assert program == re.split(r"[.@]", service)[0]
    done = subprocess.run([BIN / program, "--help"], capture_output=True, text=True, timeout=60, check=True)
    assert [flag for flag in flags if flag not in done.stdout] == []


@pytest.mark.parametrize("service", SERVICES)
def test_each_variable_of_a_command_line_is_set_or_is_in_the_settings(service):
    text = (UNITS / service).read_text()
    used = set(re.findall(r"\$\{?([A-Z_]+)", text))
    known = set(re.findall(r"^(?:Environment=)?([A-Z_]+)=", text + (UNITS / "mtmc.env").read_text(), re.M))
    assert used - known == set()


def test_a_worker_gives_its_lease_back_before_it_is_killed():
    text = (UNITS / "mtmc-worker@.service").read_text()
    grace = int(re.search(r" --grace (\d+)m ", text).group(1)) * 60
    timeout = int(re.search(r"^TimeoutStopSec=(\d+)min$", text, re.M).group(1)) * 60
    # What mtmc-worker --help says that it takes then.
    assert grace + 30 <= timeout


def test_every_service_belongs_to_the_target():
    for service in SERVICES:
        text = (UNITS / service).read_text()
        assert "PartOf=mtmc.target" in text and "WantedBy=mtmc.target" in text, service
