# SPDX-License-Identifier: Apache-2.0
"""scripts/failed-tests repeats the end of what failed tests printed, and of those alone."""

import pathlib
import shutil
import subprocess
import sys

import pytest

_SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "failed-tests"
_PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(tests NONE)
enable_testing()
add_test(NAME "unit: good" COMMAND sh -c "echo of the good one")
add_test(NAME "unit: bad" COMMAND sh -c "seq 1000 1200; echo of the bad one; exit 1")
add_test(NAME "unit: slow" COMMAND sh -c "echo of the slow one; exec sleep 60")
set_tests_properties("unit: slow" PROPERTIES TIMEOUT 1)
add_test(NAME "unit: skipped" COMMAND sh -c "echo SKIPPED: of the skipped one; exit 1")
set_tests_properties("unit: skipped" PROPERTIES SKIP_REGULAR_EXPRESSION SKIPPED:)
"""


def _run(*arguments):
    return subprocess.run([sys.executable, str(_SCRIPT), *arguments],
                          capture_output=True, text=True, check=False)


@pytest.mark.skipif(shutil.which("ctest") is None, reason="ctest is not installed")
def test_ends_of_failed_tests(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(_PROJECT)
    subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "tree"], check=True)
    subprocess.run(["ctest"], cwd=tmp_path / "tree", check=False)

    told = _run(str(tmp_path / "tree")).stdout

    assert "unit: bad" in told and "of the bad one" in told
    assert "unit: slow" in told and "of the slow one" in told
    assert "1200" in told and "1100" not in told
    assert "good one" not in told and "skipped one" not in told


def test_a_tree_that_ran_nothing(tmp_path):
    answer = _run(str(tmp_path))
    assert answer.returncode == 66 and "run ctest first" in answer.stderr
