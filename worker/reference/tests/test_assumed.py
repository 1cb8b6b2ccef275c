# SPDX-License-Identifier: Apache-2.0
"""What programs assume of a value in the middle of a model is met, and models themselves pass."""

import os

import assumed
import pytest

# The same for every change, so that a failure is the change's; another one draws others.
_SEED = os.environ.get("MTMC_ASSUMED_SEED", "20261127")
_MODELS = 12


def test_assumptions_are_refused_and_models_are_not(client, tmp_path):
    judged = 0
    for model in assumed.draw(_SEED, _MODELS):
        loaded = assumed.Judged(client, model, tmp_path / "problem.py")
        assert not loaded.refusals(assumed.nothing, assumed.workloads()), model.source()
        for program in model.programs():
            judged += 1
            assert loaded.refusals(program, assumed.workloads()), f"{program} of {model.source()}"
    assert judged >= 5
