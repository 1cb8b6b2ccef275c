# SPDX-License-Identifier: Apache-2.0
"""What `forward` returns: how it is nested, and what of it has to be computed."""

import json

import pytest
import torch
from test_trace import refusal, runs_twice, traced

from mtmc_reference.returned import Returned, is_formed_as

_HEAD = """
import collections, dataclasses, torch
import torch.nn as nn

Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Box:
    value: object
    more: object = None


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))
        self.register_buffer("offset", torch.randn(4))
        self.register_buffer("seen", torch.zeros(4))
        self.plain = torch.ones(4)

    def forward(self, x):
        {body}


def get_inputs():
    return [torch.randn(3, 4)]
"""


def source(body):
    return _HEAD.replace("{body}", "\n        ".join(body.splitlines()))


def leaf(name):
    return {"output": name}


@pytest.mark.parametrize(
    "answer, expected",
    [
        ("x + 1", leaf("y")),
        ("(x + 1,)", {"container": {"kind": "KIND_TUPLE", "items": [leaf("y")]}}),
        (
            "{'a': [x + 1, None], 2: True}",
            {
                "container": {
                    "kind": "KIND_DICTIONARY",
                    "keys": [{"stringValue": "a"}, {"intValue": "2"}],
                    "items": [
                        {"container": {"kind": "KIND_LIST", "items": [leaf("y"), {"none": {}}]}},
                        {"boolValue": True},
                    ],
                }
            },
        ),
        (
            "Pair(x + 1, float('-inf'))",
            {
                "container": {
                    "kind": "KIND_NAMED_TUPLE",
                    "module": "",
                    "className": "Pair",
                    "items": [leaf("y"), {"floatValue": "-Infinity"}],
                }
            },
        ),
        (
            "Box(x.max(dim=1))",
            {
                "container": {
                    "kind": "KIND_DATACLASS",
                    "module": "",
                    "className": "Box",
                    "keys": [{"stringValue": "value"}, {"stringValue": "more"}],
                    "items": [
                        {
                            "container": {
                                "kind": "KIND_SEQUENCE",
                                "module": "torch.return_types",
                                "className": "max",
                                "items": [leaf("y0"), leaf("y1")],
                            }
                        },
                        {"none": {}},
                    ],
                }
            },
        ),
    ],
)
def test_containers_and_plain_values_are_written_down(write_problem, answer, expected):
    graph = traced(write_problem(source=source(f"return {answer}")))

    assert graph["result"] == expected
    json.dumps(graph, allow_nan=False)


@pytest.mark.parametrize(
    "body, outputs, leaves",
    [
        ("y = x * 2\nreturn y, [y, x]", ["y"], [leaf("y"), leaf("y"), {"input": "x"}]),
        # Views are other tensors.
        ("y = x * 2\nreturn y, y.t()", ["y0", "y1"], [leaf("y0"), leaf("y1")]),
        (
            "return x + 1, self.weight, self.offset, x.t()",
            ["y0", "y1"],
            [leaf("y0"), {"input": "weight"}, {"input": "offset"}, leaf("y1")],
        ),
        # A program has to have something to do.
        ("return x, x", ["y"], [leaf("y"), leaf("y")]),
        # The caller's result must not change with the next call.
        (
            "before = self.seen\nself.seen = self.seen + 1\nreturn x + 1, before",
            ["y0", "y1", "seen_new"],
            [leaf("y0"), leaf("y1")],
        ),
        ("x.add_(1)\nreturn x * 2, x", ["y0", "y1", "x_new"], [leaf("y0"), leaf("y1")]),
        # Of a plain attribute the exported file has a copy.
        ("return x + 1, self.plain", ["y0", "y1"], [leaf("y0"), leaf("y1")]),
    ],
)
def test_each_tensor_is_computed_once_and_inputs_are_handed_back(
    write_problem, body, outputs, leaves
):
    (first, second), graph = runs_twice(write_problem(source=source(body)))

    assert [output["name"] for output in graph["outputs"]] == outputs
    items = graph["result"]["container"]["items"]
    flat = [i for item in items for i in item.get("container", {}).get("items", [item])]
    assert flat == leaves
    assert len(first) == len(outputs)
    for y, again, output in zip(first, second, graph["outputs"]):
        assert torch.equal(y, again) and list(y.shape) == output["type"]["shape"]


@pytest.mark.parametrize(
    "answer, part",
    [
        ("{'a': [x, {1, 2}]}", "at ['a'][1] is a set"),
        ("x, torch.float32", "is a dtype"),
        ("{x: x}", "has the key"),
        ("None", "no tensor"),
        ("{'s': x.sum().item()}", "at ['s'] is a number that depends"),
        ("collections.namedtuple('Local', 'a')(x)", "define the class at the top"),
        ("[[[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]]", "nested too deeply"),
    ],
)
def test_what_has_no_form_is_refused_with_its_place(write_problem, answer, part):
    failure = refusal(write_problem(source=source(f"return {answer}")))

    assert failure.reason == "OUTPUT_UNSUPPORTED" and part in failure.message


def test_another_structure_than_the_traced_one_is_noticed(write_problem):
    body = "import torch as t\nreturn (x + 1, 2 if t.compiler.is_exporting() else 3)"

    with pytest.raises(Exception, match="another structure"):
        runs_twice(write_problem(source=source(body)))


def test_structures_are_alike_where_only_tensors_differ():
    x = torch.ones(2)
    result = {"container": {"kind": "KIND_LIST", "items": [{"output": "y"}, {"intValue": "1"}]}}

    assert is_formed_as(Returned([x, 1]).structure, result)
    for other in ([x, 2], [x], (x, 1), [1, 1], [x, True], x):
        assert not is_formed_as(Returned(other).structure, result)
