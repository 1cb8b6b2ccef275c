# SPDX-License-Identifier: Apache-2.0
"""The life of a problem over the wire, with tensors shared as files."""

import io
import json
import os
import pathlib
import subprocess
import sys

import numpy
import pytest
from conftest import PACKAGE

from mtmc_reference import protocol

_NOISY = """
import os, sys
print("to standard output")
os.write(1, b"to the descriptor\\n")
assert sys.stdin.read() == ""
return torch.relu(self.fc(x))
"""
_DTYPES = {"DATA_TYPE_F32": numpy.float32, "DATA_TYPE_I64": numpy.int64}


def read(message):
    kind = message["type"]
    return numpy.fromfile(
        message["file"]["path"],
        dtype=_DTYPES[kind["dataType"]],
        count=int(numpy.prod(kind["shape"], dtype=int)),
        offset=int(message["file"].get("offset", 0)),
    ).reshape(kind["shape"])


def share(folder, name, array):
    path = pathlib.Path(folder) / f"{name}.out"
    array.astype(numpy.float32).tofile(path)
    kind = {"dataType": "DATA_TYPE_F32", "shape": [str(extent) for extent in array.shape]}
    return {"name": name, "type": kind, "file": {"path": str(path), "offset": "0"}}


@pytest.fixture
def loaded(process, write_problem):
    path = write_problem(_NOISY, init="self.fc = nn.Linear(16, 8)")
    return process.load(path, seed="7")["loaded"]["inspection"]


def inputs(process, workload):
    prepared = process.ask(prepare={"workload": workload})["prepared"]["inputs"]
    assert all(int(m["file"].get("offset", 0)) % 64 == 0 for m in prepared)
    return {message["name"]: read(message) for message in prepared}


def product(values):
    double = {name: value.astype(numpy.float64) for name, value in values.items()}
    return numpy.maximum(double["x"] @ double["fc_weight"].T + double["fc_bias"], 0)


def test_right_outputs_pass(process, loaded, tmp_path):
    values = inputs(process, 1)

    answer = process.ask(compare={"outputs": [share(tmp_path, "y", product(values))]})["compared"]

    assert answer["isCorrect"] and answer["kernelbenchAllclose"] and answer["message"] == ""
    assert answer["satisfied"][0] == "PRECISION_STRICT"
    assert answer["errors"][0]["toleranceNeeded"] < 1e-6


def test_wrong_element_is_found(process, loaded, tmp_path):
    output = product(inputs(process, 0))
    output[3, 2] += 0.5

    answer = process.ask(compare={"outputs": [share(tmp_path, "y", output)]})["compared"]

    assert not answer["isCorrect"] and not answer["kernelbenchAllclose"]
    assert answer["errors"][0]["worstIndex"] == 3 * 8 + 2
    assert f"output y is {output[3, 2]:.7g} at element 26, the reference's" in answer["message"]


@pytest.mark.parametrize("value", [0.0, numpy.nan, numpy.inf])
def test_constant_outputs_fail(process, loaded, tmp_path, value):
    output = numpy.full_like(product(inputs(process, 0)), value)

    answer = process.ask(compare={"outputs": [share(tmp_path, "y", output)]})["compared"]

    assert not answer["isCorrect"] and answer.get("satisfied", []) == []


def test_missing_and_truncated_outputs_are_wrong(process, loaded, tmp_path):
    message = share(tmp_path, "y", product(inputs(process, 0)))
    pathlib.Path(message["file"]["path"]).write_bytes(b"short")

    truncated = process.ask(compare={"outputs": [message]})["compared"]
    missing = process.ask(compare={"outputs": []})["compared"]

    assert not truncated.get("isCorrect") and "bytes" in truncated["message"]
    assert not missing.get("isCorrect") and "missing" in missing["message"]


def test_workloads_differ_and_repeat(process, loaded):
    public, hidden, again = (inputs(process, number) for number in (0, 1, 0))

    assert not numpy.array_equal(public["x"], hidden["x"])
    assert numpy.array_equal(public["x"], again["x"])
    assert not numpy.array_equal(public["fc_weight"], hidden["fc_weight"])


def test_baseline_is_timed(process, loaded):
    inputs(process, 0)
    request = {"baseline": "BASELINE_EAGER", "samples": 3, "isCold": True, "warmups": 1}

    samples = process.ask(timeBaseline=request)["timed"]["samplesSeconds"]

    assert len(samples) == 3 and all(sample > 0 for sample in samples)


def test_mutated_buffers_start_from_their_initial_values(process, write_problem, tmp_path):
    process.load(write_problem("return self.norm(x)", init="self.norm = nn.BatchNorm1d(16)"))

    first = inputs(process, 0)
    process.ask(timeBaseline={"baseline": "BASELINE_EAGER", "samples": 3})
    inputs(process, 1)
    second = inputs(process, 0)

    assert numpy.array_equal(first["norm_running_mean"], numpy.zeros(16))
    assert numpy.array_equal(second["norm_running_mean"], numpy.zeros(16))
    assert second["norm_num_batches_tracked"] == 0


def test_randomized_parameters_are_not_identities(process, write_problem):
    path = write_problem("return self.norm(x)", init="self.norm = nn.LayerNorm(16)")
    process.load(path, randomizeIdentityParameters=True)

    values = inputs(process, 0)

    assert values["norm_weight"].std() > 0.1 and values["norm_bias"].std() > 0.1


def test_changed_arguments_are_outputs(process, write_problem, tmp_path):
    found = process.load(write_problem("x.mul_(2)\nreturn x.sum(dim=1)"))["loaded"]["inspection"]
    x = inputs(process, 0)["x"]

    shared = [share(tmp_path, "y", 2 * x.sum(axis=1)), share(tmp_path, "x_new", 2 * x)]
    answer = process.ask(compare={"outputs": shared})["compared"]

    assert [o["kind"] for o in found["graph"]["outputs"]] == [
        "KIND_USER_OUTPUT",
        "KIND_INPUT_MUTATION",
    ]
    assert answer["isCorrect"], answer


def test_returned_buffer_has_its_new_content(process, write_problem, tmp_path):
    path = write_problem(
        "self.h.add_(x.mean(dim=0))\nreturn self.h",
        init="self.register_buffer('h', torch.zeros(16))",
    )
    process.load(path)
    values = inputs(process, 0)
    mean = values["x"].mean(axis=0)

    shared = [share(tmp_path, name, mean) for name in ("y", "h_new")]
    answer = process.ask(compare={"outputs": shared})["compared"]

    assert numpy.array_equal(values["h"], numpy.zeros(16))
    assert answer["isCorrect"], answer


def test_selftest_passes_on_the_host():
    command = [sys.executable, "-m", "mtmc_reference.selftest", "--device", "cpu"]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}

    done = subprocess.run(command, env=environment, capture_output=True)

    assert done.returncode == 0, done.stdout.decode()


class _LostContext:
    """A session whose device is lost by the first request that fails."""

    def __init__(self):
        self.lost = False
        self.loads = 0

    def load(self, _):
        self.loads += 1
        raise ValueError("illegal memory access")

    def prepare(self, _):
        self.lost = True
        raise ValueError("illegal memory access")

    def is_lost(self):
        return self.lost


def test_the_answer_after_which_the_device_is_lost_is_the_last():
    session, responses = _LostContext(), io.StringIO()
    requests = ['{"sequence": 1, "load": {}}\n', '{"sequence": 2, "prepare": {}}\n']

    assert not protocol.serve(session, [*requests, requests[0]], responses)

    first, second = map(json.loads, responses.getvalue().splitlines())
    assert first["sequence"] == 1 and "isLast" not in first
    assert second["isLast"] and "illegal memory access" in second["failure"]["message"]
    assert session.loads == 1
