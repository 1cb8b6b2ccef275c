# SPDX-License-Identifier: Apache-2.0
"""No program that an honest one was changed into gets through, on the CPU."""

import importlib.util
import os
import pathlib
import tempfile

import pytest
import run

import builder

# The same mutants for every change, so that a failure is the change's; run.py draws others.
_SEED = os.environ.get("MTMC_MUTANTS_SEED", "783544")
_COUNT = 80
_SECONDS = 400
_PROBLEMS = 40
_HOPPER = 90
_COMPILED = 60


def _flags(device, count):
    arguments = ["--bin", os.environ["MTMC_BIN"], "--device", device, "--count", str(count)]
    arguments += ["--timeout", str(_SECONDS), "--problems", str(_PROBLEMS), "--seed", _SEED]
    return run.parser().parse_args(arguments)


@pytest.mark.skipif(
    not importlib.util.find_spec("pyopencl"), reason="judging needs pyopencl"
)
def test_no_mutant_that_differs_is_accepted():
    summary, outcomes = run.run(_flags("opencl:0", _COUNT))
    assert not run.complaints_of(outcomes), f"seed {summary['seed']}"
    assert summary["mutants"] == _COUNT
    # What got no verdict was not tried.
    assert summary["refused"] + summary["accepted"] >= 0.95 * _COUNT


@pytest.mark.skipif(not builder.toolkit(), reason="the CUDA wheels are not installed")
def test_mutants_for_a_gpu_compile():
    """A mutant that does not compile shows nothing of what refuses the others."""
    with tempfile.TemporaryDirectory() as folder:
        flags = _flags("cuda:0", _COMPILED)
        seed, drawn = run.drawn(flags, pathlib.Path(folder))
        with builder.Builder(flags.bin, _HOPPER) as hopper:
            failures = [hopper.failure(mutant.text) for _, mutant in drawn]
    wrong = [failure for failure in failures if failure]
    assert len(wrong) <= 0.05 * len(drawn), f"seed {seed}: {wrong[:3]}"
