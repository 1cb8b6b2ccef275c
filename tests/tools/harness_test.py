# SPDX-License-Identifier: Apache-2.0
"""A model that PyTorch cannot run in one of its ways costs the file nothing that is timed beside it."""

import pathlib
import sys

import pytest

_FOLDER = pathlib.Path(__file__).resolve().parents[2] / "scripts/benchmarking"

PROBLEM = """import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.randn(4)]

def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def harness():
    sys.path.insert(0, str(_FOLDER))
    try:
        import harness
    finally:
        sys.path.pop(0)
    return harness


def test_what_fails_has_no_times(harness):
    def fail():
        raise RuntimeError("not on this device")

    class Failing:
        def sample(self, model, inputs):
            return model(*inputs)

    samples = harness._Samples(Failing())
    with pytest.raises(RuntimeError):
        samples.take("graph_ms", fail, [])
    samples.take("eager_ms", lambda: [1.0, 3.0, 2.0], [])
    assert samples.medians() == {"eager_ms": 2.0}


def test_a_file_is_timed_beside_a_rival_that_fails(harness, tmp_path, monkeypatch):
    problem, export = tmp_path / "problem.py", tmp_path / "export.py"
    problem.write_text(PROBLEM)
    export.write_text(PROBLEM.replace("Model", "ModelNew"))

    def fail(*_, **__):
        raise RuntimeError("not on this machine")

    monkeypatch.setattr(harness.torch, "compile", lambda model: fail)
    times = harness.Harness("cpu", None).time_all(problem, export, "kernelbench", ["compile"])
    assert "failure" not in times and times["ours_ms"] > 0
    assert set(times["rivals"]) == {"rival_eager_ms"}
