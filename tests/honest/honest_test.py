# SPDX-License-Identifier: Apache-2.0
"""Honest programs of every family are found correct on the CPU."""

import os

import run

_SECONDS = 900


def test_no_honest_program_is_rejected():
    bin_folder = os.environ["MTMC_BIN"]
    summary, outcomes = run.run(bin_folder, "opencl:0", is_ci=True, walks=1, timeout=_SECONDS)
    rejected = {name: one["outcome"] for name, one in outcomes.items() if one["rejected"]}
    assert not rejected
    assert summary["honest_programs"] >= 40
