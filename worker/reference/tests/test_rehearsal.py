# SPDX-License-Identifier: Apache-2.0
"""A process that rehearses serves afterwards as if it had not."""

import gc
import os
import subprocess
import sys
import weakref

from conftest import PACKAGE, Process

from mtmc_reference.rehearsal import rehearse, settle

_MODULES_OF_A_LOAD = """
import sys
from mtmc_reference.rehearsal import rehearse
from mtmc_reference.session import Session
scratch, path = sys.argv[1:]
if {rehearses}:
    assert rehearse(scratch, "cpu")
before = set(sys.modules)
Session(scratch).load({{"path": path, "device": "cpu"}})
print(len(set(sys.modules) - before))
"""


def _imported_by_a_load(scratch, path, rehearses):
    done = subprocess.run(
        [sys.executable, "-c", _MODULES_OF_A_LOAD.format(rehearses=rehearses), scratch, path],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout.split()[-1])


def test_a_load_imports_little_after_a_rehearsal(tmp_path, write_problem):
    path = str(write_problem("return torch.relu(self.fc(x))", init="self.fc = nn.Linear(16, 8)"))
    assert _imported_by_a_load(str(tmp_path), path, rehearses=False) > 100
    # The module of the problem itself, and what it alone uses.
    assert _imported_by_a_load(str(tmp_path), path, rehearses=True) <= 5


def test_a_rehearsal_leaves_no_file_behind(tmp_path):
    assert rehearse(str(tmp_path), "cpu")
    assert os.listdir(tmp_path) == []


def test_a_rehearsal_on_a_device_that_is_not_there_is_no_error(tmp_path):
    assert not rehearse(str(tmp_path), "cuda:99")


def test_a_process_that_rehearsed_has_nothing_loaded(tmp_path, write_problem):
    process = Process(tmp_path, "--rehearse", "cpu")
    assert process.ask(prepare={"workload": 0})["failure"]["reason"] == "NOT_LOADED"
    path = write_problem("return torch.relu(x)")
    assert "inspection" in process.load(path)["loaded"]
    assert process.stop() == 0


class _Circle:
    def __init__(self):
        self.itself = self


def test_garbage_is_looked_for_in_what_comes_after_the_start():
    try:
        settle()
        assert gc.get_freeze_count() > 10_000
        assert len(gc.get_objects()) < 1_000
        later = weakref.ref(_Circle())
        gc.collect()
        assert later() is None
    finally:
        gc.unfreeze()
