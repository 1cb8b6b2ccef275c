# SPDX-License-Identifier: Apache-2.0
"""Claims about the traced graph."""

import re
import types

import pytest
import torch
from conftest import EXAMPLES

from mtmc_reference.arguments import Structure
from mtmc_reference.cost import contraction_flops, minimum_bytes
from mtmc_reference.execution import Execution
from mtmc_reference.failure import ProblemFailure
from mtmc_reference.graph_facts import draws_random
from mtmc_reference.graph_of import graph_of
from mtmc_reference.mended import mended_numbers
from mtmc_reference.precision import Arithmetic
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


def test_a_layer_that_the_constructor_sets_to_inference_stays_so(write_problem):
    init = "self.norm = nn.BatchNorm1d(16).eval()\nself.drop = nn.Dropout(0.5).eval()"
    graph = traced(write_problem("return self.drop(self.norm(x))", init=init))

    assert [o["name"] for o in graph["outputs"]] == ["y"]
    assert not any("dropout" in name for name in operators(graph))


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


def runs_twice(path):
    """Outputs of two runs of the reference, in the order of the graph, and the graph."""
    problem, device = ProblemFile(str(path)), torch.device("cpu")
    model = problem.build_model(0, device)
    inputs = problem.draw()
    graph, *_ = trace(problem, model, inputs)
    execution = Execution(problem, model, graph, 0, device)
    return [execution.run(inputs, Arithmetic.STRICT) for _ in range(2)], graph


def refusal(path):
    with pytest.raises(ProblemFailure) as caught:
        traced(path)
    return caught.value


_NESTED = """
import collections
import torch
import torch.nn as nn

Pair = collections.namedtuple("Pair", "left right")


class Model(nn.Module):
    def forward(self, points, options, pair, scale=None):
        y = points[0] * options["factor"] + options["deep"]["bias"] - points[1][0]
        return {"sum": y + pair.left, "all": [y * pair.right, (y.mean(), None, 3)]}


def get_inputs():
    bias = {"bias": torch.randn(4)}
    points = (torch.randn(3, 4), [torch.randn(3, 4)])
    return [points, {"factor": 2.0, "deep": bias}, Pair(torch.randn(4), torch.randn(4)), None]
"""


def test_nested_arguments_are_inputs_of_their_own(write_problem):
    path = write_problem(source=_NESTED)

    (first, second), graph = runs_twice(path)

    names = [entry["name"] for entry in graph["inputs"]]
    assert names == ["points_0", "points_1_0", "options_deep_bias", "pair_0", "pair_1"]
    assert [entry["argumentIndex"] for entry in graph["inputs"]] == [0, 1, 3, 4, 5]
    bias = {"kind": "KIND_DICTIONARY", "keys": [{"stringValue": "bias"}]}
    assert graph["arguments"][1]["container"]["items"] == [
        {"floatValue": 2.0},
        {"container": {**bias, "items": [{"input": "options_deep_bias"}]}},
    ]
    assert graph["arguments"][2]["container"]["items"] == [{"input": "pair_0"}, {"input": "pair_1"}]
    assert graph["arguments"][3] == {"none": {}}
    # None and 3 are computed by nobody.
    assert len(graph["outputs"]) == len(first) == 3
    assert all(torch.equal(a, b) for a, b in zip(first, second))


def test_structure_of_arguments_may_not_change(write_problem):
    problem = ProblemFile(str(write_problem(source=_NESTED)))
    problem.build_model(0, torch.device("cpu"))
    problem.draw()
    problem._module.get_inputs = lambda: [torch.ones(3, 4)]

    with pytest.raises(ProblemFailure, match="nests its values otherwise"):
        problem.draw()


def test_structures_differ_by_keys():
    value = torch.ones(1)

    assert Structure([{"a": value}], ["x"]) == Structure([{"a": value}], ["x"])
    assert Structure([{"a": value}], ["x"]) != Structure([{"b": value}], ["x"])


@pytest.mark.parametrize(
    "update", ["self.seen.add_(x.mean(0))", "self.seen = self.seen + x.mean(0)"]
)
def test_state_in_a_plain_attribute_is_an_output(write_problem, update):
    path = write_problem(f"{update}\nreturn x - self.seen", init="self.seen = torch.ones(16)")

    (first, second), graph = runs_twice(path)

    assert [(o["name"], o["kind"]) for o in graph["outputs"]] == [
        ("y", "KIND_USER_OUTPUT"),
        ("seen_new", "KIND_BUFFER_MUTATION"),
    ]
    assert all(torch.equal(a, b) for a, b in zip(first, second))


def test_tensor_in_a_plain_attribute_that_stays_is_a_constant(write_problem):
    graph = traced(write_problem("return x * self.factor", init="self.factor = torch.ones(16)"))

    constant = next(entry for entry in graph["inputs"] if entry["name"] == "factor")
    assert constant["kind"] == "KIND_CONSTANT" and constant["data"]


@pytest.mark.parametrize(
    "init, forward",
    [
        ("self.calls = 0", "self.calls += 1\nreturn x * self.calls"),
        ("self.past = []", "self.past.append(x.sum(0))\nreturn x + len(self.past)"),
        (
            "self.last = None",
            "y = x if self.last is None else x + self.last\nself.last = y.mean()\nreturn y",
        ),
    ],
)
def test_each_run_starts_from_the_attributes_of_the_constructor(write_problem, init, forward):
    (first, second), _ = runs_twice(write_problem(forward, init=init))

    assert all(torch.equal(a, b) for a, b in zip(first, second))


@pytest.mark.parametrize(
    "forward, expected",
    [
        ("return x * x.max().item()", ["max.default", "mul.Tensor"]),
        ("return x.masked_fill(x > 0, x.min().item())", ["gt.Scalar", "min.default"]),
        ("return torch.full((4,), x.max().item())", ["max.default", "expand.default"]),
        ("return x / (2 * x.max().item() + 1)", ["max.default", "_to_copy.default"]),
        ("n = (x > 0).sum().item()\nreturn x / max(n, 1)", ["gt.Scalar", "sum.default"]),
        ("return torch.full_like(x, x.max().item())", ["max.default", "expand.default"]),
        ("return x.new_full((3,), x.max().item())", ["max.default", "expand.default"]),
        ("return torch.tensor(x.max().item()) * x", ["max.default", "expand.default"]),
        ("y = x * 1\ny[0] = x.max().item()\nreturn y", ["mul.Tensor", "max.default"]),
        ("n = (x > 0).sum().item()\nreturn x * (n // 2)", ["gt.Scalar", "sum.default"]),
        ("n = (x > 0).sum().item()\nreturn x * (n % 3)", ["gt.Scalar", "sum.default"]),
        ("return x / (float(x.norm()) + 1)", ["linalg_vector_norm.default"]),
        ("return x * int((x > 0).sum()) + float('2')", ["gt.Scalar", "sum.default", "mul.Tensor"]),
    ],
)
def test_number_taken_from_a_tensor_stays_a_tensor(write_problem, forward, expected):
    (outputs, _), graph = runs_twice(write_problem(forward))

    assert [op.removeprefix("aten::") for op in operators(graph)][: len(expected)] == expected
    assert graph["outputs"][0]["type"]["shape"] == list(outputs[0].shape)


@pytest.mark.parametrize(
    "forward, reason, part",
    [
        ("y = x * 2\nif y.sum() > 0:\n    y = -y\nreturn y", "UNTRACEABLE", "torch.where"),
        ("y = x * 2\nreturn y[y > 0]", "OUTPUT_UNSUPPORTED", "fixed size"),
        ("y = x * 2\nreturn torch.fft.rfft(y).abs()", "UNTRACEABLE", "real tensors"),
        ("y = x * 2\nreturn y.add(y, alpha=y.max().item())", "UNTRACEABLE", ".item()"),
        ("y = x\nreturn x.new_zeros(int(y.abs().sum().long()))", "OUTPUT_UNSUPPORTED", "size"),
        ("n = x.abs().sum().long().item()\nreturn torch.zeros(n)", "OUTPUT_UNSUPPORTED", "size"),
    ],
)
def test_refusal_names_the_line_and_what_to_do(write_problem, forward, reason, part):
    failure = refusal(write_problem(forward))

    assert failure.reason == reason
    assert f"line {failure.line}" in failure.message and part in failure.message
    assert failure.line == 12


def test_classes_of_numbers_stay_what_they_are():
    module = types.SimpleNamespace()
    with mended_numbers(module):
        assert isinstance(1.0, module.float) and isinstance(True, module.int)
        assert not isinstance(1, module.float) and issubclass(bool, module.int)
        assert module.float("inf") == float("inf") and module.int("ff", base=16) == 255
        assert module.float(torch.tensor(2.5)) == 2.5 and module.int(torch.tensor(3)) == 3
    assert not vars(module)


def test_number_as_output_is_refused(write_problem):
    failure = refusal(write_problem("return x, x.sum().item()"))

    assert failure.reason == "OUTPUT_UNSUPPORTED" and "as a tensor" in failure.message


def test_problem_without_content_is_not_run(write_problem):
    path = write_problem("y = x * 2\nif y.sum() > 0:\n    y = -y\nreturn y")

    with pytest.raises(ProblemFailure, match="line 12 cannot be traced"):
        graph_of(str(path))


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN"])
def test_long_recurrent_layer_is_one_operator(write_problem, layer):
    init = f"self.layer = nn.{layer}(16, 8, num_layers=2, bidirectional=True)"
    forward = "y, h = self.layer(x.repeat(40, 1).unsqueeze(1))\nreturn y"
    (outputs, _), graph = runs_twice(write_problem(forward, init=init))

    assert sum(layer.lower() in op for op in operators(graph)) == 1
    assert graph["outputs"][0]["type"]["shape"] == list(outputs[0].shape)


def test_missing_module_is_named(write_problem):
    with pytest.raises(ProblemFailure) as caught:
        ProblemFile(str(write_problem(source="import torch\nimport no_such_module\n")))
    failure = caught.value

    assert failure.line == 2 and "install it" in failure.message


def test_first_random_operator_has_the_seed(write_problem):
    forward = "x = F.dropout(F.dropout(x, 0.0), 0.5)\nreturn x * torch.rand_like(x)"
    problem = ProblemFile(str(write_problem(forward)))
    model = problem.build_model(7, torch.device("cpu"))

    graph, *_ = trace(problem, model, problem.draw(), seed=7)

    assert operators(graph)[:2] == ["aten::native_dropout.default", "aten::rand_like.default"]
    dropout, rand = graph["nodes"][:2]
    assert dropout["argumentNames"][-1] == "seed" and dropout["arguments"][-1] == {"intValue": 7}
    assert "seed" not in rand["argumentNames"]
    assert draws_random(graph)


@pytest.mark.parametrize("dropout, is_random", [(0.0, False), (0.5, True)])
def test_recurrent_layer_draws_where_it_drops_out(write_problem, dropout, is_random):
    init = f"self.layer = nn.GRU(16, 8, num_layers=2, dropout={dropout})"
    graph = traced(write_problem("return self.layer(x.unsqueeze(1))[0]", init=init))

    assert draws_random(graph) == is_random
