# SPDX-License-Identifier: Apache-2.0
"""`mtmc evaluate`: one program of the user's against one problem, whatever it is."""

import json

import problems
import pytest
import stack as stacks

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_JOB_FAILED = 3
EXIT_NO_IMPROVEMENT = 4

ROWS = 128
ELEMENTS = ROWS * 256

PROGRAM = """\
//@ mtmc 1 opencl
//@ input x f32[{rows},256]
//@ output y f32[{rows},256]
//@ launch chain grid={blocks} block=256 args=(x, y)
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void chain(__global const float *restrict x, __global float *restrict y) {{
  const size_t i = get_global_id(0);
  y[i] = tanh(x[i]) / (1.0f + exp(-x[i] * 1.0f)) + {offset}f;
}}
"""


def program(offset="1.0", blocks=ROWS):
    return PROGRAM.format(rows=ROWS, blocks=blocks, offset=offset)


@pytest.fixture(scope="module")
def problem(stack):
    return stack.write("chain.py", problems.pointwise(0, rows=ROWS))


def evaluate(stack, name, text, problem, *flags):
    """Exit code and job of the evaluation of a program's text."""
    path = stack.write(name, text)
    done = stack.run("--output", "json", "evaluate", path, problem, *flags)
    return done, json.loads(done.stdout) if done.stdout else None


def only_candidate(stack, job):
    (candidate,) = stack.json("candidates", "list", job["name"])["candidates"]
    return candidate


def test_a_correct_program_is_verified_and_compared(stack, problem):
    done, job = evaluate(stack, "good.cl", program(), problem)
    assert done.returncode in (EXIT_OK, EXIT_NO_IMPROVEMENT), done
    assert job["state"] == "STATE_SUCCEEDED"
    assert (done.returncode == EXIT_OK) == (job["best_speedup"] > 1)
    candidate = only_candidate(stack, job)
    assert candidate["coder"] == "user" and candidate["state"] == "STATE_EVALUATED"
    assert stack.run("candidates", "show", candidate["name"]).returncode == 0


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("wrong.cl", program(offset="1.5"), ["wrong"]),
        ("half.cl", program(blocks=ROWS // 2), ["y"]),
        ("no_compile.cl", program().replace("tanh(", "tanh)"), ["compile"]),
        ("prose.cl", "A program that is faster than any other.\n", ["kind_parse"]),
        ("other_shape.cl", program().replace("y f32[128,256]", "y f32[128,255]"), ["y"]),
    ],
)
def test_a_program_that_is_no_good_fails_its_job(stack, problem, name, text, words):
    done, job = evaluate(stack, name, text, problem)
    assert done.returncode == EXIT_JOB_FAILED, done
    assert job["state"] == "STATE_FAILED"
    assert job["failure"]["reason"] == "NO_CORRECT_CANDIDATE"
    candidate = only_candidate(stack, job)
    shown = json.dumps(candidate["evaluation"]).lower()
    assert all(word in shown for word in words), candidate["evaluation"]


def test_a_program_that_is_no_file_is_a_usage_error(stack, problem):
    done = stack.run("evaluate", stack.folder / "nothing.cl", problem)
    assert done.returncode == EXIT_USAGE, done
    assert "nothing.cl" in done.stderr and done.stderr.count("\n") == 1


def test_the_same_program_is_not_measured_twice(stack, problem):
    first, _ = evaluate(stack, "good.cl", program(), problem)
    again, job = evaluate(stack, "good.cl", program(), problem)
    assert again.returncode == first.returncode
    assert only_candidate(stack, job)["evaluation"]["is_cached"]


def test_a_job_that_is_cancelled_in_the_middle_ends_and_frees_the_worker(stack):
    slow = stack.create_job(
        problems.pointwise(7), "slow", **problems.quick(stacks.CONTRACT, trials=500, strategy="random")
    )
    for event in stack.client.events(slow.name, seconds=stacks.COMMAND_SECONDS):
        if event.HasField("candidate"):
            break
    assert stack.run("jobs", "cancel", slow.name).returncode == 0
    ended = stack.await_job(slow.name, 30)
    assert stacks.CONTRACT.Job.State.Name(ended.state) == "STATE_CANCELLED"
    unfinished = {"STATE_PENDING", "STATE_RUNNING"}
    listed = stack.json("candidates", "list", slow.name)["candidates"]
    assert not unfinished & {candidate["state"] for candidate in listed}
    quick = stack.create_job(problems.pointwise(8), "next", **problems.quick(stacks.CONTRACT, trials=1))
    assert stacks.CONTRACT.Job.State.Name(stack.await_job(quick.name, 120).state) == "STATE_SUCCEEDED"
