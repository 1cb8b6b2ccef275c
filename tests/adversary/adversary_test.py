# SPDX-License-Identifier: Apache-2.0
"""Every row of the catalogue is tried on the CPU, and none gets through."""

import os

import builder
import catalogue
import pytest
import run

_SECONDS = 900
# Failures that come before a program is compiled, or instead of it.
_EARLY = {"PARSE", "CHECK", "COMPILE", "TIMEOUT"}
_HOPPER = 90


@pytest.fixture(scope="module")
def outcomes():
    """Outcome of every attempt by its name, from one run."""
    bin_folder = os.environ["MTMC_BIN"]
    return run.run(bin_folder, "opencl:0", is_ci=True, timeout=_SECONDS)[1]


@pytest.mark.parametrize("row", catalogue.ROWS)
def test_no_attempt_of_the_row_is_accepted(outcomes, row):
    attempts = {name: one for name, one in outcomes.items() if one["row"] == row}
    if not attempts:
        pytest.skip("needs CUDA")
    accepted = {name: one["accepted"] for name, one in attempts.items() if one["accepted"]}
    assert not accepted


def test_the_catalogue_is_complete():
    counts = {"A": 22, "B": 13, "C": 19, "D": 11, "E": 7, "F": 30}
    rows = {f"{letter}{i + 1}" for letter, count in counts.items() for i in range(count)}
    assert set(catalogue.ROWS) == rows | {"A0"}
    assert all(entry.attempts for entry in catalogue.ROWS.values())


@pytest.mark.skipif(not builder.toolkit(), reason="the CUDA wheels are not installed")
def test_programs_for_a_gpu_compile_where_nothing_refuses_them_before():
    """A defence that comes later is not tried by a text that does not compile."""
    wrong = {}
    with builder.Builder(os.environ["MTMC_BIN"], _HOPPER) as hopper:
        for _, name, attempt, case in run.cases_of("cuda:0", is_ci=False):
            kinds = attempt.refused_by if isinstance(attempt.refused_by, frozenset) else set()
            if "TIMEOUT" in kinds or (kinds and kinds <= _EARLY):
                continue
            failure = hopper.failure(case.text)
            if failure and failure[0] not in kinds:
                wrong[name] = failure
    assert not wrong
