# SPDX-License-Identifier: Apache-2.0
"""deploy/compose/stack.yaml: from nothing to a finished job on one machine, by the commands of docs/deploy/compose.md."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import containers
import documented
import processes
import pytest
import yaml

FILE = documented.ROOT / "deploy/compose/stack.yaml"
TEXT = FILE.read_text()
SERVICES = yaml.safe_load(TEXT)["services"]
OURS = {"coordinator", "policyd", "gateway", "worker", "cli"}
COMPOSE = shutil.which("podman-compose", path=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}")
BIN = pathlib.Path(os.environ["MTMC_BIN"])
JOB_SECONDS = 600

runs = pytest.mark.skipif(
    bool(containers.missing("compose")) or COMPOSE is None,
    reason=containers.missing("compose") or "there is no podman-compose; run scripts/setup",
)


# What holds without a container.


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_service_of_ours_may_do_no_more_than_it_must(name):
    service = SERVICES[name]
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    assert "no-new-privileges" in service["security_opt"] and "privileged" not in service
    assert re.search(r"/mtmc-[a-z]+:\$\{MTMC_VERSION:-\d+\.\d+\.\d+\}$", service["image"])


def test_no_image_floats():
    assert all(re.search(r":(v?\d|\$\{MTMC_VERSION)", service["image"]) for service in SERVICES.values())


@pytest.mark.parametrize("name", ["coordinator", "policyd", "gateway", "worker"])
def test_a_service_takes_flags_that_its_program_has(name):
    program = BIN / f"mtmc-{name}"
    if not program.exists():
        pytest.skip(f"{program.name} is not built")
    done = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=60, check=True)
    given = [flag.partition("=")[0] for flag in SERVICES[name].get("command", [])]
    assert [flag for flag in given if flag not in done.stdout] == []


def test_every_variable_is_in_the_page():
    page = (documented.ROOT / "docs/deploy/compose.md").read_text()
    passed = [variable for service in SERVICES.values() for variable in service.get("environment", []) if isinstance(service["environment"], list)]
    used = set(re.findall(r"\$\{([A-Z_]+)", TEXT)) | {name for name in passed if not name.startswith("GF_")}
    assert used and all(f"`{name}`" in page for name in used)


def test_folders_beside_the_file_are_there():
    sources = [volume.partition(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])]
    assert all((FILE.parent / source).is_dir() for source in sources if source.startswith("."))


# What runs.


class Laptop:
    """podman-compose with the images of this build, in a network of its own."""

    def __init__(self, engine, network, folder):
        self._engine = engine
        self._network = network
        self.folder = folder

    def environment(self):
        variables = self._engine.environment(MTMC_PYTHON_FOLDER=str(self.folder / "python"))
        tools = f"{self._engine.program().parent}:{pathlib.Path(COMPOSE).parent}"
        return {**variables, "PATH": f"{tools}:{variables['PATH']}"}

    def page(self, word, changes=None, seconds=900):
        text = documented.replaced(documented.block("compose", word), changes or {})
        return self.sh(text, seconds)

    def sh(self, text, seconds=300):
        done = subprocess.run(
            self._network.inside("bash", "-euc", text), cwd=documented.ROOT, env=self.environment(), timeout=seconds,
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}\n{self.logs()}"
        return done.stdout

    def logs(self):
        names = self._engine.podman("ps", "--all", "--format", "{{.Names}}").split()
        return "\n".join(f"--- {name}\n{self._engine.logs(name)[-1500:]}" for name in names)

    def cli(self, *command, seconds=JOB_SECONDS):
        return self.sh(f"podman-compose --profile cli -f {FILE} run --rm cli {' '.join(command)}", seconds)

    def jobs(self):
        printed = self.cli("-o json jobs list")
        return json.loads(printed[printed.index("{") :])["jobs"]

    def query(self, text):
        done = self._network.inside("curl", "-fsS", f"http://127.0.0.1:9090/api/v1/query?query={urllib.parse.quote(text)}")
        reply = subprocess.run(done, capture_output=True, text=True, timeout=30, check=False)
        return json.loads(reply.stdout)["data"]["result"] if reply.returncode == 0 else []


@pytest.fixture(scope="module")
def laptop(images, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compose")
    prometheus = shutil.which("prometheus", path=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}")
    assert prometheus, "there is no prometheus; run scripts/setup"
    image = folder / "prometheus"
    image.mkdir()
    shutil.copy(prometheus, image / "prometheus")
    (image / "Containerfile").write_text(
        "FROM localhost/debian:12\nCOPY prometheus /bin/prometheus\nRUN mkdir /prometheus && chown 65534 /prometheus\n"
        'VOLUME /prometheus\nUSER 65534\nENTRYPOINT ["/bin/prometheus"]\n'
    )
    images.build(SERVICES["prometheus"]["image"], image)
    containers.python_folder(folder / "python")
    with containers.Network() as network:
        yield Laptop(images, network, folder)
        images.podman("rm", "--all", "--force", "--time", "10", check=False)


@runs
def test_the_page_runs_a_job(laptop):
    # Grafana's image comes from its registry alone.
    printed = laptop.page("jobs create", {
        "up -d": "up -d policyd gateway coordinator worker prometheus\nsleep 5", "--trials 4": "--trials 2",
    }, seconds=1500)  # fmt: skip
    assert "speedup" in printed
    assert [job["state"] for job in laptop.jobs()] == ["STATE_SUCCEEDED"]


@runs
def test_prometheus_sees_all_four(laptop):
    processes.eventually(
        lambda: [series["value"][1] for series in laptop.query('sum(up{job="mtmc"})')] == ["4"], 90, "all daemons are scraped", pause=1
    )
    # The job may have ended since the last scrape.
    processes.eventually(lambda: laptop.query("sum(mtmc_jobs_finished_total)"), 60, "the job is seen", pause=1)


@runs
def test_jobs_outlive_the_stack(laptop):
    before = laptop.jobs()
    laptop.page("stack.yaml down")
    laptop.sh(f"podman-compose -f {FILE} up -d policyd gateway coordinator")
    laptop.sh("sleep 5")
    assert laptop.jobs() == before
    laptop.sh(f"podman-compose -f {FILE} down --volumes")
