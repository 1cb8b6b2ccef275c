# SPDX-License-Identifier: Apache-2.0
"""What scripts/benchmarking/same.py compares is the same on both sides."""

import pathlib
import subprocess
import sys

_ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(_ROOT / "scripts" / "benchmarking"))

import same  # noqa: E402  (the path is set above)


def test_a_program_calls_what_the_problem_calls():
    chain = same.Chain("three", 64, ("tanh", "sigmoid", "relu"))

    calls = [line for line in chain.program("cuda").splitlines() if "call" in line]

    assert calls == ["//@ call aten::tanh(x) -> h1", "//@ call aten::sigmoid(h1) -> h2",
                     "//@ call aten::relu(h2) -> y"]
    assert [f"torch.{op}" in chain.problem() for op in chain.operators] == [True] * 3


def test_a_problem_runs(tmp_path):
    path = tmp_path / "problem.py"
    path.write_text(same.Chain("one", 64, ("tanh",)).problem())

    done = subprocess.run(
        [sys.executable, "-c", "import problem, torch; x, = problem.get_inputs(); "
         "assert torch.equal(problem.Model()(x), torch.tanh(x))"],
        cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_outcomes_are_counted_and_failures_kept():
    chain = same.CHAINS[0]
    good = {"comparisons": [{"outcome": "OUTCOME_SAME", "speedup": 1.0, "speedup_low": 0.99, "speedup_high": 1.01,
                             "baseline_measurement": {"median_seconds": 4e-6}}],
            "measurement": {"median_seconds": 4e-6, "samples_seconds": [4e-6] * 3}}

    row = same.summarize(chain, [good, good, {"failure": {"kind": "KIND_CRASH"}}])

    assert (row["runs"], row["same"], row["failed"]) == (3, 2, 1)
    assert row["failure"] == {"kind": "KIND_CRASH"}
    assert row["samples"] == [3, 3]
