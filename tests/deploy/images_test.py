# SPDX-License-Identifier: Apache-2.0
"""docker/: the images hold what a role needs and no more; docs/deploy/containers.md runs a job in them."""

import json
import subprocess

import containers
import documented
import pytest

VERSION = "0.1.0"
ROLES = ("coordinator", "policyd", "gateway", "cli", "worker")
# Bytes of an image; 60 MiB where nothing else is said.
MOST_BYTES = {"cli": 120 << 20, "worker": 900 << 20}
SHELLS = ("sh", "bash", "dash", "busybox", "apt", "apt-get", "dpkg", "perl")

MISSING = containers.missing("images")
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def image(role):
    return f"localhost/mtmc-{role}:{VERSION}"


def files_of(images, role):
    """Every path of an image, without the slash before it."""
    name = images.podman("create", image(role))
    listed = subprocess.Popen(
        [*map(str, ["podman", *images._storage, "export", name])], env=images.environment(), stdout=subprocess.PIPE
    )
    paths = containers.must(["tar", "-tf", "-"], stdin=listed.stdout).splitlines()
    assert listed.wait() == 0
    images.podman("rm", name)
    return {path.removeprefix("./").rstrip("/") for path in paths}


@pytest.mark.parametrize("role", ROLES)
def test_an_image_runs_as_nobody_and_says_what_it_is(images, role):
    config = images.inspect(image(role))
    assert config["User"] == "65532:65532"
    labels = config["Labels"]
    assert labels["org.opencontainers.image.version"] == VERSION
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert len(labels["org.opencontainers.image.revision"]) == 40
    assert config["Size"] < MOST_BYTES.get(role, 60 << 20), config["Size"]


@pytest.mark.parametrize("role", ROLES)
def test_an_image_has_no_shell_and_nothing_that_gains_rights(images, role):
    names = files_of(images, role)
    found = {name for name in names if name.rsplit("/", 1)[-1] in SHELLS and "/bin/" in f"/{name}"}
    assert found == set()
    done = images.podman("run", "--rm", "--entrypoint", "/bin/sh", image(role), "-c", "true", check=False)
    assert done.returncode != 0 and "no such file" in done.stderr


@pytest.mark.parametrize("role", ROLES)
def test_a_role_tells_its_version(images, role):
    flag = "version" if role == "cli" else "--version"
    assert VERSION in images.podman("run", "--rm", "--read-only", image(role), flag)


@pytest.mark.parametrize("role", [role for role in ROLES if role != "cli"])
def test_a_daemon_has_a_health_check_that_needs_no_shell(images, role):
    found = images.inspect(image(role))
    check = found.get("HealthCheck") or found.get("Healthcheck")
    assert check["Test"] == ["CMD", "/opt/mtmc/bin/mtmc-health"]


def test_a_coordinator_can_call_postgresql(images):
    done = images.podman(
        "run", "--rm", "--read-only", image("coordinator"), "--store", "postgresql://nobody@127.0.0.1:9/none",
        "--artifacts", "/tmp/artifacts", check=False,
    )  # fmt: skip
    # Its client library is opened at run time: what is told is that nobody answers, not that it is missing.
    assert done.returncode != 0 and "Connection refused" in done.stderr, done.stderr


class Host:
    """Commands of the page, in a network of its own; none of its containers is left. A context manager."""

    def __init__(self, images, folder):
        self._images = images
        self.folder = folder
        containers.python_folder(folder / "python")
        self._network = containers.Network()

    def __enter__(self):
        self._network.__enter__()
        return self

    def __exit__(self, *error):
        self._images.podman("rm", "--all", "--force", "--time", "10", check=False)
        self._network.__exit__(*error)

    def page(self, word, more=""):
        """What the block with `word` prints, and then `more`."""
        text = documented.block("containers", word).replace("-v /opt/python:", f"-v {self.folder}/python:")
        variables = self._images.environment()
        variables["PATH"] = f"{self._images.program().parent}:{variables['PATH']}"
        done = subprocess.run(
            self._network.inside("bash", "-euc", text + more), cwd=documented.ROOT / "examples/problems", env=variables,
            capture_output=True, text=True, timeout=900, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        names = self._images.podman("ps", "--all", "--format", "{{.Names}}").split()
        logs = "\n".join(f"--- {name}\n{self._images.logs(name)[-1500:]}" for name in names)
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}\n{logs}"
        return done.stdout


def test_the_page_runs_a_job(images, tmp_path):
    with Host(images, tmp_path) as host:
        host.page("quiet=", more="sleep 5")
        assert "speedup" in host.page("jobs create")


def test_a_worker_tells_what_its_container_lacks(images):
    done = images.podman("run", "--rm", "--read-only", image("worker"), "--doctor", check=False)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["python"]["state"] == "missing" and "MTMC_PYTHON" in checks["python"]["remedy"]
