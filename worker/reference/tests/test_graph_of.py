# SPDX-License-Identifier: Apache-2.0
"""Graphs without inputs."""

import json
import resource
import subprocess
import sys

import pytest
from conftest import EXAMPLES, PACKAGE

from mtmc_reference.graph_of import graph_of

_HUGE = """
def get_inputs():
    return [torch.rand(1 << 20, 1 << 16), torch.randint(0, 9, (1 << 20,))]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    "init, body",
    [
        ("self.fc = nn.Linear(16, 8)", "return torch.tanh(self.fc(x))"),
        ("self.norm = nn.BatchNorm1d(16)", "return self.norm(x).relu()"),
        ("self.scale = nn.Parameter(torch.ones(16))", "s = x.square().mean(1)\nreturn s, self.scale"),
    ],
    ids=["product", "buffers", "outputs"],
)
def test_a_graph_is_that_of_a_load(client, write_problem, init, body):
    path = write_problem(body, init=init)
    assert graph_of(path) == client.load(path)["graph"]


def test_a_problem_of_many_gigabytes_takes_no_memory(write_problem):
    path = write_problem(source=_model("x.relu().sum(1) + y") + _HUGE)

    graph = graph_of(path)

    assert graph["inputs"][0]["type"]["shape"] == [1 << 20, 1 << 16]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 16 << 20  # kilobytes


def _model(expression):
    return (
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x, y):\n"
        f"        return {expression}\n"
    )


def test_what_cannot_be_traced_is_named_and_the_others_are_written(write_problem, tmp_path):
    bad = write_problem(source="x = 1\n")
    folder = tmp_path / "graphs"
    folder.mkdir()

    done = subprocess.run(
        [sys.executable, "-m", "mtmc_reference.graph_of", "--out", folder, bad, EXAMPLES[0]],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(PACKAGE), "PATH": "/usr/bin:/bin"},
    )

    assert done.returncode == 3 and "problem: NO_MODEL" in done.stderr
    graph = json.loads((folder / f"{EXAMPLES[0].stem}.json").read_text())
    assert graph["outputs"] and not (folder / "problem.json").exists()
