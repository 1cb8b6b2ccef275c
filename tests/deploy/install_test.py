# SPDX-License-Identifier: Apache-2.0
"""deploy/install: one command installs, upgrades in place and goes back."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def release(folder, commit):
    """An unpacked archive with one program that says its commit."""
    tree = folder / commit / "mtmc-1.2.3"
    (tree / "bin").mkdir(parents=True)
    (tree / "lib").mkdir()
    (tree / "share/mtmc/deploy").mkdir(parents=True)
    shutil.copytree(ROOT / "deploy/systemd", tree / "share/mtmc/deploy/systemd")
    (tree / "share/mtmc/commit").write_text(f"{commit}\n")
    (tree / "bin/mtmc").write_text(f"#!/bin/sh\necho {commit}\n")
    (tree / "bin/mtmc").chmod(0o755)
    shutil.copy(ROOT / "deploy/install", tree)
    shutil.copy(ROOT / "LICENSE", tree)
    return tree


class Host:
    def __init__(self, folder):
        self.folder = folder
        self.prefix = folder / "opt"
        self.root = folder / "root"

    def install(self, script, *flags):
        return subprocess.run(
            [script, "--prefix", self.prefix, *flags],
            env={**os.environ, "MTMC_INSTALL_ROOT": str(self.root), "HOME": str(self.folder)},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def says(self, link="current"):
        done = subprocess.run([self.prefix / link / "bin/mtmc"], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def releases(self):
        return sorted(p.name for p in self.prefix.iterdir() if not p.is_symlink())


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def must(done):
    assert done.returncode == 0, done.stderr
    return done


def test_the_first_installation_is_the_current_one(host, tmp_path):
    must(host.install(release(tmp_path, "aaa") / "install"))
    assert host.says() == "aaa"
    assert host.releases() == ["1.2.3-aaa"]
    assert not (host.prefix / "previous").exists()


def test_an_upgrade_keeps_the_release_before_and_no_older_one(host, tmp_path):
    for commit in ("aaa", "bbb", "ccc"):
        must(host.install(release(tmp_path, commit) / "install"))
    assert (host.says(), host.says("previous")) == ("ccc", "bbb")
    assert host.releases() == ["1.2.3-bbb", "1.2.3-ccc"]


def test_the_same_release_again_changes_nothing(host, tmp_path):
    first, second = release(tmp_path, "aaa"), release(tmp_path, "bbb")
    for tree in (first, second, second):
        must(host.install(tree / "install"))
    assert (host.says(), host.says("previous")) == ("bbb", "aaa")


def test_a_rollback_goes_back_and_forth(host, tmp_path):
    for commit in ("aaa", "bbb"):
        must(host.install(release(tmp_path, commit) / "install"))
    must(host.install(host.prefix / "current/install", "--rollback"))
    assert (host.says(), host.says("previous")) == ("aaa", "bbb")
    must(host.install(host.prefix / "current/install", "--rollback"))
    assert (host.says(), host.says("previous")) == ("bbb", "aaa")


def test_a_rollback_without_a_release_before_is_refused(host, tmp_path):
    must(host.install(release(tmp_path, "aaa") / "install"))
    done = host.install(host.prefix / "current/install", "--rollback")
    assert done.returncode == 1
    assert "there is no release before 1.2.3-aaa" in done.stderr
    assert host.says() == "aaa"


def test_a_copy_that_was_cut_short_is_made_again(host, tmp_path):
    part = host.prefix / ".1.2.3-aaa.part"
    part.mkdir(parents=True)
    (part / "half").touch()
    must(host.install(release(tmp_path, "aaa") / "install"))
    assert host.says() == "aaa"
    assert not (host.prefix / "current/half").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="units are installed as root")
def test_units_name_the_prefix_and_settings_survive_an_upgrade(host, tmp_path):
    must(host.install(release(tmp_path, "aaa") / "install"))
    units = host.root / "usr/local/lib/systemd/system"
    assert f"ExecStart={host.prefix}/current/bin/mtmc-policyd" in (units / "mtmc-policyd.service").read_text()
    assert (units / "mtmc-.service.d/10-common.conf").exists()
    assert "/opt/mtmc" not in "".join(p.read_text() for p in units.glob("*.service"))
    settings = host.root / "etc/mtmc/mtmc.env"
    settings.write_text("MTMC_PYTHON=/mine\n")
    must(host.install(release(tmp_path, "bbb") / "install"))
    assert settings.read_text() == "MTMC_PYTHON=/mine\n"
    assert os.readlink(host.root / "usr/local/bin/mtmc") == f"{host.prefix}/current/bin/mtmc"


def test_what_is_no_release_is_refused(host):
    done = host.install(ROOT / "deploy/install")
    assert done.returncode == 1
    assert "is no release" in done.stderr
