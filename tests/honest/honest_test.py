# SPDX-License-Identifier: Apache-2.0
"""Honest programs of every family are found correct on the CPU."""

import os

import builder
import pytest
import run

_SECONDS = 900
_HOPPER = 90


def test_no_honest_program_is_rejected():
    bin_folder = os.environ["MTMC_BIN"]
    summary, outcomes = run.run(bin_folder, "opencl:0", is_ci=True, walks=1, timeout=_SECONDS)
    rejected = {name: one["outcome"] for name, one in outcomes.items() if one["rejected"]}
    assert not rejected
    assert summary["honest_programs"] >= 40


@pytest.mark.skipif(not builder.toolkit(), reason="the CUDA wheels are not installed")
def test_hand_written_programs_for_a_gpu_compile():
    with builder.Builder(os.environ["MTMC_BIN"], _HOPPER) as hopper:
        found = {name: hopper.failure(text) for name, text in run.hand_written("cuda").items()}
    assert len(found) >= 35
    assert not {name: failure for name, failure in found.items() if failure}
