# SPDX-License-Identifier: Apache-2.0
"""Files that cannot be optimized: each gives one message that says what to do, a
documented exit code, and leaves nothing behind."""

import os
import time

import contract
import problems
import processes
import pytest
import stack as stacks

EXIT_USAGE = 2
EXIT_JOB_FAILED = 3
EXIT_CANCELLED = 5

# Those of an idle stack; the last four are a worker's, kept warm.
PROCESSES = {"mtmc-coordinator", "mtmc-policyd", "mtmc-gateway", "mtmc-worker",
             "mtmc_reference", "mtmc-builder", "mtmc-runner", "mtmc-sandbox"}  # fmt: skip

HEAD = "import torch\nimport torch.nn as nn\n"
MODEL = "class Model(nn.Module):\n    def forward(self, x):\n        return torch.tanh(x) * 2\n"
INPUTS = "def get_inputs():\n    return [torch.randn(64, 64)]\n"
INIT = "def get_init_inputs():\n    return []\n"


def model(*lines):
    body = "".join(f"        {line}\n" for line in lines)
    return f"class Model(nn.Module):\n    def forward(self, x):\n{body}"


# Name of the case: source, reason, words of the message, line that it names.
BAD = {
    "not Python": ("def model(:\n    pass\n", "NOT_PYTHON", "fix line 1", 1),
    "no Model": (HEAD + INPUTS + INIT, "NO_MODEL", "add one", 0),
    "a Model that is no module": (
        HEAD + "class Model:\n    pass\n" + INPUTS + INIT, "NO_MODEL", "derive it from one", 0),
    "no get_inputs": (HEAD + MODEL + INIT, "NO_GET_INPUTS", "add one", 0),
    "a Model that raises": (
        HEAD + model("raise ValueError('no kernel for this')") + INPUTS + INIT,
        "MODEL_RAISED", "fix the file", 5),
    "an import that is missing": (
        "import a_package_that_nobody_has\n" + HEAD + MODEL + INPUTS + INIT,
        "MODEL_RAISED", "install it", 1),
    "get_inputs of a wrong type": (
        HEAD + MODEL + "def get_inputs():\n    return {'x': 1}\n" + INIT,
        "INPUTS_WRONG_TYPE", "return a list", 0),
    "an input of a wrong type": (
        HEAD + MODEL + "def get_inputs():\n    return [torch.randn(8, dtype=torch.cfloat)]\n" + INIT,
        "INPUTS_WRONG_TYPE", "", 0),
    "a reference that is not deterministic": (
        "import os\n" + HEAD
        + model("return x + float(int.from_bytes(os.urandom(2), 'little'))") + INPUTS + INIT,
        "NOT_DETERMINISTIC", "make forward depend on", 0),
    "control flow that cannot be traced": (
        HEAD + model("if x.sum() > 0:", "    return x * 2", "return x") + INPUTS + INIT,
        "UNTRACEABLE", "control flow", 5),
    "inputs larger than memory": (
        HEAD + MODEL + "def get_inputs():\n    return [torch.randn(1 << 22, 1 << 20)]\n" + INIT,
        "INPUTS_TOO_LARGE", "make", 0),
}  # fmt: skip


@pytest.fixture
def is_clean(stack):
    """No file is left in the current folder, and no process besides the stack's."""
    yield
    assert os.listdir(stack.work) == []
    processes.eventually(
        lambda: {process.name for process in stack.processes()} <= PROCESSES,
        20,
        f"no other processes than {PROCESSES}",
    )


@pytest.mark.parametrize("case", BAD)
def test_a_bad_problem_fails_its_job_with_one_message(stack, is_clean, case):
    source, reason, words, line = BAD[case]
    path = stack.write("bad.py", source)
    done = stack.run("optimize", path)
    assert done.returncode == EXIT_JOB_FAILED, done
    shown = done.stdout + done.stderr
    assert shown.count(f"[{reason}]") == 1, shown
    assert words in shown
    assert "Traceback" not in done.stderr

    job = stack.json("jobs", "list", "--limit", "1")["jobs"][0]
    assert job["state"] == "STATE_FAILED"
    assert job["failure"]["reason"] == reason
    assert job["failure"].get("line", 0) == line, job["failure"]


def test_a_good_problem_is_served_after_the_bad_ones(stack, is_clean):
    job = stack.create_job(problems.pointwise(), **problems.quick(stacks.CONTRACT, trials=1))
    ended = stack.await_job(job.name, 120)
    assert stacks.CONTRACT.Job.State.Name(ended.state) == "STATE_SUCCEEDED", ended.failure


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [("missing.py", None, "FILE_NOT_FOUND"), ("empty.py", "  \n", "FILE_EMPTY")],
)
def test_a_file_that_is_not_there_is_a_usage_error(stack, is_clean, name, content, reason):
    path = stack.folder / name
    if content is not None:
        path.write_text(content)
    done = stack.run("optimize", path)
    assert done.returncode == EXIT_USAGE
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert name in done.stderr and f"[{reason}]" in done.stderr


def test_a_job_cancelled_in_the_middle_ends_and_keeps_its_candidates(stack, is_clean):
    options = problems.quick(stacks.CONTRACT, trials=200, strategy="random", patience=200)
    job = stack.create_job(problems.pointwise(999), **options)

    def has_candidate():
        parent = {"parent": job.name}
        listed = stack.client.call("CandidateService", "ListCandidates", **parent).candidates
        return any(candidate.HasField("evaluation") for candidate in listed)

    processes.eventually(has_candidate, 120, "a candidate is evaluated")
    watch = stack.start("jobs", "watch", job.name, log="watch.log")
    assert stack.run("jobs", "cancel", job.name).returncode == 0
    assert watch.wait(60) == EXIT_CANCELLED, stack.log("watch")

    ended = stack.job(job.name)
    assert stacks.CONTRACT.Job.State.Name(ended.state) == "STATE_CANCELLED"
    assert ended.end_reason == stacks.CONTRACT.Job.END_REASON_CANCELLED
    assert has_candidate()
    # Again is no error, and changes nothing.
    again = stack.client.call("JobService", "CancelJob", name=job.name,
                              request_id=contract.new_request_id())  # fmt: skip
    assert again.job == ended


def test_a_cancelled_inspection_frees_the_worker(stack, is_clean):
    source = HEAD + "import time\n" + MODEL + "def get_inputs():\n    time.sleep(600)\n" + INIT
    job = stack.create_job(source)

    def is_worked_on():
        workers = stack.client.call("WorkerService", "ListWorkers").workers
        return any(job.name in worker.activity for worker in workers)

    processes.eventually(is_worked_on, 60, "the worker has the job")
    started = time.monotonic()
    stack.client.call("JobService", "CancelJob", name=job.name)
    next_job = stack.create_job(problems.pointwise(7), **problems.quick(stacks.CONTRACT, trials=1))
    stack.await_job(next_job.name, 120)
    assert time.monotonic() - started < 120
