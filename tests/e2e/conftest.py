# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests over the real processes."""

import os

import processes
import pytest
import stack as stacks


@pytest.fixture(scope="session", autouse=True)
def _orphans():
    processes.adopt_orphans()


@pytest.fixture
def host(tmp_path):
    """A machine without anything; nothing may be left on it."""
    machine = stacks.Host(tmp_path)
    before = {process.pid for process in processes.descendants()}
    yield machine
    processes.eventually(
        lambda: {process.pid for process in processes.descendants()} <= before,
        20,
        f"every process ends: {processes.descendants()}",
    )
    assert os.listdir(machine.work) == [], "a stray file in the current folder"


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    """One `mtmc up` for the tests of a file."""
    with stacks.Stack(tmp_path_factory.mktemp("stack")) as running:
        yield running
    assert running.exit_code == 0, running.log("up")
    processes.eventually(
        lambda: not processes.descendants(), 20, f"every process ends: {processes.descendants()}"
    )
