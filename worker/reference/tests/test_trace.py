# SPDX-License-Identifier: Apache-2.0
"""Claims about the traced graph."""

import re

import pytest
import torch
from conftest import EXAMPLES

from mtmc_reference.cost import contraction_flops, minimum_bytes
from mtmc_reference.problem import ProblemFile
from mtmc_reference.trace import trace
from mtmc_reference.values import Names


def traced(path):
    problem = ProblemFile(str(path))
    model = problem.build_model(0, torch.device("cpu"))
    graph, *_ = trace(problem, model, problem.draw())
    return graph


def operators(graph):
    return [node["op"] for node in graph["nodes"]]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_becomes_a_graph_that_defines_every_value_once(path):
    graph = traced(path)

    defined = [entry["name"] for entry in graph["inputs"]]
    for node in graph["nodes"]:
        for argument in node["arguments"]:
            elements = argument.get("list", {}).get("elements", [argument])
            assert all(e["value"] in defined for e in elements if "value" in e)
        assert len(node["arguments"]) == len(node["argumentNames"])
        assert len(node["results"]) == len(node["resultTypes"])
        assert graph["source"].splitlines()[node["line"] - 1].strip()
        defined += node["results"]
    names = defined + [output["name"] for output in graph["outputs"]]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z_]\w*", name) for name in names)
    assert all(output["value"] in defined for output in graph["outputs"])
    assert minimum_bytes(graph) > 0


def test_digest_depends_on_the_graph_alone(write_problem):
    first = traced(write_problem("return torch.relu(x)"))
    commented = traced(write_problem("return torch.relu(x)  # the same"))
    other = traced(write_problem("return torch.tanh(x)"))

    assert first["digest"] == commented["digest"] != other["digest"]


def test_batch_norm_states_its_mutations(write_problem):
    graph = traced(write_problem("return self.norm(x)", init="self.norm = nn.BatchNorm1d(16)"))

    assert "aten::_native_batch_norm_legit_functional.default" in operators(graph)
    mutations = [o for o in graph["outputs"] if o["kind"] == "KIND_BUFFER_MUTATION"]
    assert [o["name"] for o in graph["outputs"]][0] == "y"
    assert {o["target"] for o in mutations} == {
        "norm.running_mean",
        "norm.running_var",
        "norm.num_batches_tracked",
    }


def test_composites_stay_whole(write_problem):
    forward = "x = F.layer_norm(self.fc(x), (16,))\nreturn F.softmax(F.gelu(x), dim=1)"
    graph = traced(write_problem(forward, init="self.fc = nn.Linear(16, 16)"))

    assert operators(graph) == [
        "aten::linear.default",
        "aten::layer_norm.default",
        "aten::gelu.default",
        "aten::softmax.int",
    ]
    assert [node["line"] for node in graph["nodes"]] == [11, 11, 12, 12]
    assert graph["nodes"][0]["modulePath"] == "fc"
    assert contraction_flops(graph) == 2 * 32 * 16 * 16


def test_in_place_operations_become_new_values(write_problem):
    graph = traced(write_problem("y = x * 2\ny += 1\ny.relu_()\nreturn y"))

    assert operators(graph) == ["aten::mul.Tensor", "aten::add.Tensor", "aten::relu.default"]


def test_dropout_of_probability_zero_disappears(write_problem):
    graph = traced(write_problem("return F.dropout(x, 0.0, True) + 1"))

    assert operators(graph) == ["aten::add.Tensor"]


def test_several_outputs_are_numbered_and_dead_code_is_gone(write_problem):
    graph = traced(write_problem("dead = x.exp()\na, b = x.chunk(2, dim=1)\nreturn a, b"))

    assert [output["name"] for output in graph["outputs"]] == ["y0", "y1"]
    assert operators(graph) == ["aten::split.Tensor"]
    assert graph["nodes"][0]["results"] == ["split_r0", "split_r1"]


def test_names_avoid_words_of_the_kernel_languages():
    names = Names()

    assert [names.take(w) for w in ("float", "exp", "fc.weight", "0.bias", "x", "x")] == [
        "float_1",
        "exp_1",
        "fc_weight",
        "value_0_bias",
        "x",
        "x_1",
    ]


def test_final_states_of_an_lstm_have_the_shape_of_the_first_ones(write_problem):
    init = "self.lstm = nn.LSTM(4, 8, num_layers=2, bidirectional=True, proj_size=3)"
    forward = "_, (h, c) = self.lstm(x.reshape(8, 16, 4))\nreturn h, c, h[-1] * 2"
    path = write_problem(forward, init=init)
    problem = ProblemFile(str(path))
    model = problem.build_model(0, torch.device("cpu"))
    inputs = problem.draw()

    graph, *_ = trace(problem, model, inputs)

    shapes = [output["type"]["shape"] for output in graph["outputs"]]
    assert shapes == [list(y.shape) for y in model(*inputs)]
