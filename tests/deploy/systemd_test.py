# SPDX-License-Identifier: Apache-2.0
"""deploy/systemd under a real systemd in a container: what docs/deploy/systemd.md says, as it stands there.

The tests go on from each other, in their order."""

import json
import pathlib

import containers
import documented
import processes
import pytest

HOST = "host"
IMAGE = "localhost/mtmc-systemd:12"
FOLDER = pathlib.Path(__file__).with_name("systemd")
JOB_SECONDS = 600
SERVICES = ("mtmc-policyd", "mtmc-gateway", "mtmc-coordinator", "mtmc-worker@0")
# Of `systemd-analyze security`; docs/deploy/systemd.md.
MOST_EXPOSURE = {"mtmc-worker@0": 3.0}

MISSING = containers.missing("systemd")
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


class Machine:
    """A container whose first process is systemd."""

    def __init__(self, engine):
        self._engine = engine

    def run(self, text, seconds=300, check=True):
        done = self._engine.podman("exec", "-w", "/root", HOST, "bash", "-euc", text, seconds=seconds, check=False)
        if check:
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}\n{self.logs()}"
        return done.stdout

    def page(self, word, changes=None, seconds=900):
        return self.run(documented.replaced(documented.block("systemd", word), changes or {}), seconds)

    def logs(self):
        done = self._engine.podman("exec", HOST, "journalctl", "--no-pager", "-n", "80", "-u", "mtmc-*", check=False)
        return done.stdout

    def active(self):
        return self.run(f"systemctl is-active {' '.join(SERVICES)}", check=False).split()

    def pid(self, service):
        return self.run(f"systemctl show -P MainPID {service}").strip()

    def mtmc(self, *command, seconds=JOB_SECONDS):
        return self.run(f"MTMC_ENDPOINT=127.0.0.1:50151 mtmc {' '.join(map(str, command))}", seconds)

    def job(self, name):
        return json.loads(self.mtmc("-o json jobs get", name))

    def await_end(self, name):
        ended = processes.eventually(
            lambda: (job := self.job(name))["state"] not in ("STATE_PENDING", "STATE_RUNNING") and job,
            JOB_SECONDS, f"{name} ends", pause=1,
        )  # fmt: skip
        assert ended["state"] == "STATE_SUCCEEDED", ended

    def open_job(self, seed):
        """A job that has tried something and has more to try."""
        created = self.mtmc(
            "-o json jobs create /opt/mtmc/current/share/mtmc/examples/scaled_softmax.py --trials 3 --no-records --seed", seed
        )
        name = json.loads(created)["name"]
        tried = lambda: len(json.loads(self.mtmc("-o json candidates list", name)).get("candidates", []))  # noqa: E731
        processes.eventually(lambda: tried() > 0, JOB_SECONDS, f"{name} has tried something", pause=1)
        return name


@pytest.fixture(scope="module")
def machine(engine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("systemd")
    engine.build(IMAGE, FOLDER)
    containers.python_folder(folder / "python")
    # Namespaces of units want the privileges of a host. No network but loopback.
    engine.podman(
        "run", "-d", "--name", HOST, "--systemd=always", "--privileged", "--network=none", "--shm-size=4g",
        "-v", f"{folder / 'python'}:/opt/mtmc/python:ro", IMAGE,
    )  # fmt: skip
    engine.podman("cp", engine.archive, f"{HOST}:/root/{engine.archive.name}")
    machine = Machine(engine)
    processes.eventually(
        lambda: machine.run("systemctl is-system-running", check=False).strip() in ("running", "degraded"),
        60, "systemd has started", pause=0.5,
    )  # fmt: skip
    yield machine
    machine.run("systemctl stop 'mtmc-*'", seconds=400, check=False)
    engine.podman("rm", "--force", "--time", "10", HOST)


def test_the_page_installs_and_starts_it_and_runs_a_job(machine):
    assert machine.run("systemctl is-system-running", check=False).strip() == "running"
    machine.page("mtmc-0.1.0/install\n")
    # What the page says of hosts without a GPU, and of containers.
    machine.run("echo MTMC_DEVICE=opencl:0 > /etc/mtmc/worker-0.env && mount -o remount,exec /dev/shm")
    printed = machine.page("systemctl enable --now", {"--wait": "--trials 2 --wait"})
    assert "speedup" in printed
    assert [job["state"] for job in json.loads(machine.mtmc("-o json jobs list"))["jobs"]] == ["STATE_SUCCEEDED"]
    assert machine.active() == ["active"] * 4


def test_a_worker_is_confined_by_its_unit(machine):
    (worker,) = json.loads(machine.mtmc("-o json workers list"))["workers"]
    assert "confined" in json.dumps(worker).lower(), worker


def test_each_has_a_user_that_reaches_nothing_of_the_others(machine):
    users = [machine.run(f"stat -c %u /proc/{machine.pid(service)}").strip() for service in SERVICES]
    assert len(set(users)) == 4 and "0" not in users
    assert machine.run("runuser -u mtmc-worker -- ls /var/lib/mtmc", check=False) == ""
    assert "mtmc.db" in machine.run("ls /var/lib/mtmc")


@pytest.mark.parametrize("service", SERVICES)
def test_a_running_unit_is_no_more_exposed_than_the_page_says(machine, service):
    shown = machine.run(f"systemd-analyze security --no-pager {service}.service | tail -1")
    assert float(shown.split(":")[1].split()[0]) <= MOST_EXPOSURE.get(service, 1.5), shown


def test_a_daemon_that_dies_comes_back_and_a_job_goes_on(machine):
    job = machine.open_job(21)
    for service in SERVICES:
        before = machine.pid(service)
        machine.run(f"kill -KILL {before}")
        processes.eventually(lambda: machine.pid(service) not in ("0", before), 30, f"{service} is back", pause=0.3)
    machine.await_end(job)
    assert machine.active() == ["active"] * 4


def test_an_upgrade_and_the_way_back_leave_a_job_open(machine):
    job = machine.open_job(22)
    machine.run("echo fffffff > mtmc-0.1.0/share/mtmc/commit")
    before = machine.pid("mtmc-coordinator")
    # The worker finishes its lease, and the coordinator is there for it meanwhile.
    assert "0.1.0-fffffff" in machine.run("mtmc-0.1.0/install", seconds=400)
    assert machine.run("journalctl --no-pager -u mtmc-worker@0 | grep 'stop-sigterm' || true") == ""
    assert machine.pid("mtmc-coordinator") != before
    machine.page("--rollback")
    assert "fffffff" not in machine.run("readlink /opt/mtmc/current")
    machine.await_end(job)
    assert machine.active() == ["active"] * 4


def test_a_worker_that_is_stopped_ends_by_itself(machine):
    machine.run("systemctl stop mtmc-worker@0", seconds=360)
    assert machine.run("systemctl show -P Result mtmc-worker@0").strip() == "success"
    assert machine.active() == ["active"] * 3 + ["inactive"]
