# SPDX-License-Identifier: Apache-2.0
"""Examples through the whole system on the CPU path: verified, mostly faster than eager,
and exported to a file that plain PyTorch runs. Other ones each time, of which all take a
quarter of an hour: MTMC_EXAMPLES=15 is all of them."""

import ast
import json
import os
import pathlib
import random
import subprocess
import sys

import pytest
import stack as stacks

FOLDER = pathlib.Path(__file__).parents[2] / "examples/problems"
COUNT = int(os.environ.get("MTMC_EXAMPLES", "3"))
EVERY = sorted(FOLDER.glob("*.py"))
EXAMPLES = sorted(random.sample(EVERY, min(COUNT, len(EVERY))))

# Enough for the first good steps of the rules; the suite shall take minutes.
TRIALS = int(os.environ.get("MTMC_EXAMPLE_TRIALS", "3"))
LEAST_FASTER = len(EXAMPLES) // 3

# The tolerance of KernelBench for float32, which is the default precision class.
TOLERANCE = 1e-4

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def winners(stack):
    """What `mtmc optimize` says of each example, filled by the first test."""
    return {}


def optimize(stack, example):
    """The ended job, its best candidate, and the exported file.

    `mtmc optimize` has no flag for the noise of a measurement; its own defaults
    take minutes on a busy machine."""
    job = stack.create_job(
        example.read_text(),
        example.stem,
        budget=stacks.CONTRACT.Budget(max_trials=TRIALS),
        evaluation=stacks.CONTRACT.EvaluationOptions(
            min_samples=10, max_noise_ratio=0.03, max_variants=4, omit_profile=True
        ),
    )
    done = stack.run("--output", "json", "jobs", "watch", job.name)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}{stack.failures(job.name)}"
    best = stack.json("candidates", "show", job.name)
    exported = stack.folder / f"{example.stem}_mtmc.py"
    written = stack.run("export", job.name, "--file", exported)
    assert written.returncode == 0, written.stderr
    return json.loads(done.stdout), best, exported


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_verified_winner(stack, winners, example):
    job, best, exported = optimize(stack, example)
    evaluation = best["evaluation"]
    outcome = evaluation["comparisons"][0]["outcome"]
    print(f"\n{example.stem}: {job['best_speedup']:.2f}x {outcome} by "
          f"{best.get('action', {}).get('text', 'start')}")  # fmt: skip
    winners[example] = (outcome, exported)
    assert job["state"] == "STATE_SUCCEEDED"
    assert evaluation["verdict"] == "VERDICT_CORRECT"
    assert "failure" not in evaluation


def test_winners_are_faster_than_eager(winners):
    outcomes = {path.stem: outcome for path, (outcome, _) in winners.items()}
    assert list(outcomes.values()).count("OUTCOME_FASTER") >= LEAST_FASTER, outcomes


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_exported_winner_does_the_same_in_plain_pytorch(stack, winners, example):
    if example not in winners:
        pytest.fail("it has no winner")
    _, exported = winners[example]
    allowed = {"torch", "pyopencl", "numpy"}
    assert third_party_imports(exported) - third_party_imports(example) <= allowed
    done = subprocess.run(
        [stacks.PYTHON, pathlib.Path(__file__).with_name("check_export.py"), example, exported,
         str(TOLERANCE)],
        env={"PATH": os.environ["PATH"], "HOME": str(stack.folder)},
        cwd=stack.folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "same\n"


def third_party_imports(path):
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names)
