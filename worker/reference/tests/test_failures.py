# SPDX-License-Identifier: Apache-2.0
"""Each bad problem has one reason, one sentence and the user's line."""

import json
import os
import subprocess
import sys

import pytest
from conftest import PACKAGE

_HEADER = "import torch\nimport torch.nn as nn\n"
_MODEL = "class Model(nn.Module):\n    def forward(self, x):\n        return x + 1\n"
_INPUTS = "def get_inputs():\n    return [torch.rand(4)]\n"


@pytest.mark.parametrize(
    "source, reason, line",
    [
        ("def broken(:\n", "NOT_PYTHON", 1),
        (_HEADER + _INPUTS, "NO_MODEL", 0),
        (_HEADER + _INPUTS + "def Model():\n    return 3\n", "NO_MODEL", 0),
        (_HEADER + _MODEL, "NO_GET_INPUTS", 0),
        ("import torch\nimport nothing_of_that_name\n", "MODEL_RAISED", 2),
        ("raise SystemExit(3)\n", "MODEL_RAISED", 1),
        (_HEADER + _MODEL + "def get_inputs():\n    return 3\n", "INPUTS_WRONG_TYPE", 0),
        (_HEADER + _MODEL + "def get_inputs():\n    return [object()]\n", "INPUTS_WRONG_TYPE", 0),
        (
            _HEADER + _MODEL + "def get_inputs():\n    return [torch.rand(1 << 44)]\n",
            "INPUTS_TOO_LARGE",
            0,
        ),
    ],
)
def test_bad_file(process, write_problem, source, reason, line):
    failure = process.load(write_problem(source=source))["failure"]

    assert (failure["reason"], failure["line"]) == (reason, line)
    assert len(failure["message"].splitlines()) == 1


@pytest.mark.parametrize(
    "forward, reason, line",
    [
        ("raise ValueError('mine')", "MODEL_RAISED", 11),
        ("return x[: int(x.sum().item()) % 3]", "UNTRACEABLE", 11),
        ("if x.sum() > 0:\n    x = x + 1\nreturn x", "UNTRACEABLE", 11),
        ("return x, x.sum().item()", "OUTPUT_UNSUPPORTED", 0),
        ("return torch.complex(x, x)", "OUTPUT_UNSUPPORTED", 11),
        ("return torch.complex(x, x).abs()", "UNTRACEABLE", 11),
    ],
)
def test_bad_forward(process, write_problem, forward, reason, line):
    failure = process.load(write_problem(forward))["failure"]

    assert (failure["reason"], failure["line"]) == (reason, line)


def test_a_name_that_the_trace_needs_for_itself_is_told(process, write_problem):
    init = "self.code = nn.Parameter(torch.ones(16))"
    failure = process.load(write_problem("return x + self.code", init=init))["failure"]

    assert failure["reason"] == "UNTRACEABLE"
    assert "rename" in failure["message"] and "'code'" in failure["message"]


def test_missing_file(process, tmp_path):
    assert process.load(tmp_path / "absent.py")["failure"]["reason"] == "FILE_NOT_FOUND"


def test_model_that_differs_from_run_to_run(process, write_problem):
    init = "import itertools\nself.n = itertools.count()"
    path = write_problem("return x + next(self.n)", init=init)

    assert process.load(path)["failure"]["reason"] == "NOT_DETERMINISTIC"


CHAOS = "x = torch.sigmoid(x)\nfor _ in range({steps}):\n    x = 3.9 * x * (1 - x)\nreturn x"


def test_model_of_which_rounding_alone_decides_the_answer(process, write_problem):
    failure = process.load(write_problem(CHAOS.format(steps=100)))["failure"]

    assert failure["reason"] == "ROUNDING_DECIDES"
    assert "half of output y" in failure["message"]


@pytest.mark.parametrize(
    "forward",
    [
        # Rounding doubles a few times, and the answer is still there.
        CHAOS.format(steps=12),
        # Nothing but rounding, which is nothing beside any tolerance.
        "return x - x.double().sub(1.0).add(1.0).float()",
        # All ones but for rounding.
        "return torch.softmax(x, -1).sum(-1)",
    ],
)
def test_model_that_rounding_does_not_decide(process, write_problem, forward):
    assert "failure" not in process.load(write_problem(forward))


def test_limit_of_the_request_is_kept(process, write_problem):
    request = {"path": str(write_problem("return x")), "limits": {"memoryBytes": "1000"}}

    assert process.ask(load=request)["failure"]["reason"] == "INPUTS_TOO_LARGE"


def test_forward_that_never_ends_is_interrupted(process, write_problem):
    path = str(write_problem("while True:\n    x = x + 1"))

    failure = process.ask(load={"path": path, "limits": {"traceTimeout": "1.5s"}})["failure"]

    assert (failure["reason"], failure["line"] in (11, 12)) == ("TRACE_TIMEOUT", True)


def test_requests_out_of_order_are_answered(process, tmp_path):
    process.load(tmp_path / "absent.py")

    assert process.ask(prepare={"workload": 0})["failure"]["reason"] == "NOT_LOADED"
    assert process.ask(nonsense={})["failure"]["reason"] == "INVALID_REQUEST"
    assert process.send("this is not JSON")["failure"]["reason"] == "REFERENCE_FAILED"


def test_python_without_torch_says_so(tmp_path):
    code = (
        "import runpy, sys; sys.modules['torch'] = None; "
        f"sys.argv = ['x', '--scratch', {str(tmp_path)!r}]; "
        "runpy.run_module('mtmc_reference', run_name='__main__')"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        input=b'{"sequence": "4", "load": {}}\n',
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        capture_output=True,
    )

    answer = json.loads(done.stdout)
    assert (answer["sequence"], answer["failure"]["reason"]) == ("4", "NO_TORCH")
