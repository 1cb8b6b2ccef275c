# SPDX-License-Identifier: Apache-2.0
"""podman and buildah without a daemon, on a base image made here, files below the build tree."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import clusters
import release

PROGRAMS = ("podman", "buildah", "runc", "mmdebstrap")
BASE = "localhost/debian:12"
# What is expensive and never changes; a build tree is thrown away as a whole.
CACHE = release.BUILD / "images"
BUILD_SECONDS = 900

# Limits that a host without CAP_SYS_RESOURCE can set, and what works without systemd.
CONFIG = """
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
netns = "host"
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


def missing(name):
    """What keeps the tests `name` from running containers here; empty when nothing does."""
    if reason := clusters.not_chosen(name, "scripts/container-test"):
        return reason
    absent = [name for name in PROGRAMS if shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin") is None]
    if absent:
        return f"{', '.join(absent)} cannot be found; apt-get install buildah podman runc mmdebstrap uidmap"
    return "" if os.getuid() == 0 else "containers are tested as root"


def base_archive(name="base", packages=("ca-certificates",)):
    """A Debian 12 as a tar archive, made once in about 90 seconds."""
    archive = CACHE / f"{name}.tar"
    if not archive.exists():
        CACHE.mkdir(exist_ok=True)
        part = CACHE / f".{name}.part.tar"
        must(
            ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages)}", "bookworm", part],
            BUILD_SECONDS,
        )
        part.rename(archive)
    return archive


def must(command, seconds=120, **options):
    """What a command prints; fails with all of it."""
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=seconds, check=False, **options
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


def python_folder(folder):
    """What `python3.11 -m venv` and the wheels would make, for the interpreter of Debian in a container."""
    python = pathlib.Path(os.environ.get("MTMC_PYTHON", release.ROOT / ".venv/bin/python"))
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").symlink_to("/usr/bin/python3")
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11\n")
    must(["cp", "-al", python.parents[1].resolve() / "lib", folder / "lib"])


class Network:
    """A network of its own for containers that use their host's: loopback and nothing else. A context manager."""

    def __enter__(self):
        self._process = subprocess.Popen(
            ["unshare", "--net", "bash", "-c", "ip link set lo up && echo && exec sleep infinity"], stdout=subprocess.PIPE
        )
        assert self._process.stdout.readline() == b"\n"
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()

    def inside(self, *command):
        return ["nsenter", "-t", str(self._process.pid), "-n", "--", *map(str, command)]


class Engine:
    """Images and containers below `folder`; none is left. A context manager."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        # podman takes no path of more than 50 characters here.
        self._run = tempfile.mkdtemp(prefix="mtmc-run-", dir="/tmp")
        self._storage = ["--root", self.folder / "storage", "--runroot", self._run]

    def __enter__(self):
        self.folder.mkdir(parents=True)
        (self.folder / "containers.conf").write_text(CONFIG)
        return self

    def __exit__(self, *_):
        # Health checks leave complaints, for they want a systemd to start them.
        self.podman("rm", "--all", "--force", "--time", "10", check=False)
        self.podman("rmi", "--all", "--force", check=False)
        shutil.rmtree(self._run, ignore_errors=True)

    def environment(self, **changes):
        path = os.environ["PATH"] + ":/usr/sbin"
        return {**os.environ, "PATH": path, "CONTAINERS_CONF": str(self.folder / "containers.conf"), **changes}

    def podman(self, *command, seconds=180, check=True):
        line = ["podman", *self._storage, *command]
        if check:
            return must(line, seconds, env=self.environment())
        return subprocess.run(
            [*map(str, line)], env=self.environment(), capture_output=True, text=True, timeout=seconds, check=False
        )

    def import_base(self):
        self.podman("import", "--change", "CMD /bin/bash", base_archive(), BASE, seconds=BUILD_SECONDS)

    def build_command(self, *flags):
        """A command line that builds from what is here and asks no registry."""
        return " ".join(map(str, [
            "buildah", *self._storage, "bud", "--isolation", "chroot", "--network", "host",
            "--ulimit", "nofile=4096:4096", "--pull-never", *flags,
        ]))  # fmt: skip

    def build_images(self, archive, *roles, flags=()):
        """The images of docker/ from an archive; all roles if none is named."""
        must(
            [release.ROOT / "scripts/images", *roles], BUILD_SECONDS,
            env=self.environment(
                MTMC_IMAGES_ARCHIVE=str(archive), MTMC_IMAGES_BASE=BASE, MTMC_IMAGES_BUILD=self.build_command(*flags)
            ),
        )  # fmt: skip

    def build(self, name, folder):
        """An image of any folder with a Containerfile."""
        must([*self.build_command().split(), "-t", name, folder], BUILD_SECONDS, env=self.environment())

    def program(self):
        """Path of a podman that has these images and containers, for other programs to call."""
        path = self.folder / "bin/podman"
        if not path.exists():
            path.parent.mkdir()
            path.write_text(f'#!/bin/sh\nexec /usr/bin/podman {" ".join(map(str, self._storage))} "$@"\n')
            path.chmod(0o755)
        return path

    def inspect(self, name):
        return json.loads(self.podman("inspect", name))[0]

    def logs(self, name):
        done = self.podman("logs", name, check=False)
        return done.stdout + done.stderr
