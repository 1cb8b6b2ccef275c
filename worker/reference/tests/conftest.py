# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a reference process, and problem files written from a few lines.

What the reference draws in secret it draws here from a seed, which failures tell: a verdict of a
test is then no matter of luck. `MTMC_TEST_SEED` gives another one.
"""

import json
import math
import os
import pathlib
import random
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


SEED = os.environ.get("MTMC_TEST_SEED", "1")

# Runs `python -m mtmc_reference` with the bytes of a seed.
_SEEDED = """
import os, random, runpy
os.urandom = random.Random({seed!r}).randbytes
runpy.run_module("mtmc_reference", run_name="__main__")
"""


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a CUDA device, and is skipped without")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    if report.failed:
        report.sections.append(("Seed", f"MTMC_TEST_SEED={SEED}"))
    return report


@pytest.fixture(autouse=True)
def draws(request, monkeypatch):
    """What a test draws depends on the seed and its name, not on the tests before it."""
    source = random.Random(f"{SEED} {request.node.nodeid.rpartition('/')[2]}")
    monkeypatch.setattr(os, "urandom", source.randbytes)


class Process:
    """Speaks the protocol with `python -m mtmc_reference`."""

    def __init__(self, scratch, *flags):
        self.scratch = scratch
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
        self._child = subprocess.Popen(
            [sys.executable, "-c", _SEEDED.format(seed=SEED), "--scratch", str(scratch), *flags],
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


class Client:
    """A session in this process, whose outputs come from a function of the inputs."""

    def __init__(self, scratch):
        from mtmc_reference.session import Session

        self.session = Session(str(scratch))
        self._scratch = str(scratch)

    def load(self, path, **problem):
        request = {"path": str(path), "problem": problem, "device": "cpu"}
        return self.session.load(request)["inspection"]

    def check(self, candidate, workload=0, distribution="DISTRIBUTION_UNSPECIFIED", **compare):
        """Compared of `candidate(tensors by name)`, or None where the workload is dropped."""
        request = {"workload": workload, "distribution": distribution}
        prepared = self.session.prepare(request)
        if "dropped" in prepared:
            return None
        return self.compare(prepared, candidate, **compare)

    def refusals(self, candidate, workloads):
        """Those of the `workloads`, arguments of `check`, that refuse a candidate."""
        answers = {workload: self.check(candidate, *workload) for workload in workloads}
        return [w for w, answer in answers.items() if answer and not answer["isCorrect"]]

    def compare(self, prepared, candidate, **compare):
        import torch
        from mtmc_reference import share

        with share.opened(prepared["inputs"], torch.device("cpu")) as tensors:
            answer = candidate({name: tensor.clone() for name, tensor in tensors.items()})
        outputs = answer if isinstance(answer, dict) else {"y": answer}
        publication = share.publish(list(outputs.items()), self._scratch, torch.device("cpu"))
        request = {"outputs": publication.messages, "prepared": prepared["prepared"], **compare}
        try:
            return self.session.compare(request)
        finally:
            publication.release()

    def check_all(self, candidate):
        """Compared by distribution, the public one under `public`."""
        from mtmc_reference.distribution import DISTRIBUTIONS

        answers = {"public": self.check(candidate)}
        for number, name in enumerate(DISTRIBUTIONS, start=3):
            answers[name] = self.check(candidate, number, name)
        return {name: answer for name, answer in answers.items() if answer is not None}


@pytest.fixture
def client(tmp_path, monkeypatch):
    # However slow the host is: what tests find must not depend on it.
    monkeypatch.setattr("mtmc_reference.judge._MIXED_SECONDS", math.inf)
    monkeypatch.setattr("mtmc_reference.judge._OWN_SECONDS", math.inf)
    monkeypatch.setattr("mtmc_reference.honest._ORDER_SECONDS", math.inf)
    folder = tmp_path / "scratch"
    folder.mkdir()
    made = Client(folder)
    yield made
    made.session.close()
    assert not list(folder.iterdir()), "the session left files behind"
