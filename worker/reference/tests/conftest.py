# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a reference process, and problem files written from a few lines."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
EXAMPLES = sorted((PACKAGE.parents[1] / "examples" / "problems").glob("*.py"))
sys.path.insert(0, str(PACKAGE))

_HEADER = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
_FOOTER = """
def get_inputs():
    return [torch.randn(32, 16)]

def get_init_inputs():
    return []
"""


class Process:
    """Speaks the protocol with `python -m mtmc_reference`."""

    def __init__(self, scratch):
        self.scratch = scratch
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
        self._child = subprocess.Popen(
            [sys.executable, "-m", "mtmc_reference", "--scratch", str(scratch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self._sequence = 0

    def send(self, line):
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()
        return json.loads(self._child.stdout.readline())

    def ask(self, **request):
        self._sequence += 1
        response = self.send(json.dumps({"sequence": str(self._sequence), **request}))
        assert response["sequence"] == str(self._sequence)
        return response

    def load(self, path, **problem):
        return self.ask(load={"path": str(path), "problem": problem, "device": "cpu"})

    def stop(self):
        self._child.stdin.close()
        return self._child.wait(timeout=30)


@pytest.fixture(scope="session")
def process(tmp_path_factory):
    child = Process(tmp_path_factory.mktemp("scratch"))
    yield child
    assert child.stop() == 0
    assert not list(child.scratch.iterdir()), "the process left files behind"


@pytest.fixture
def write_problem(tmp_path):
    """Writes a file with the given body of `forward`, or a whole source."""

    def write(forward=None, source=None, init="pass", footer=_FOOTER):
        if source is None:
            body = "\n        ".join(forward.strip().splitlines())
            start = "\n        ".join(init.strip().splitlines())
            source = (
                f"{_HEADER}\nclass Model(nn.Module):\n    def __init__(self):\n"
                f"        super().__init__()\n        {start}\n\n"
                f"    def forward(self, x):\n        {body}\n{footer}"
            )
        path = tmp_path / "problem.py"
        path.write_text(source)
        return path

    return write
