# SPDX-License-Identifier: Apache-2.0
"""Mixed workloads of whatever type and shape: one that cannot be changed in some way stays as it
is, and never ends the reference."""

import itertools
import random

import pytest
from conftest import SEED
from mtmc_reference.distribution import MIXED

_BODIES = {
    "packed": "(x == y).sum(-1).float() + (x * 100 + y > 250).float().sum()",
    "differences": "(x.float() - y.float()).square().sum(-1)",
    "bits": "((x.long() << 3) ^ (y.long() & 7)).float()",
    "larger": "torch.where(x > y, x.float(), y.float() * 0.5).cumsum(-1)",
    "places": "torch.arange(12.0)[x.long() % 12] + y.float()",
}
_TYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64")
_SHAPES = ((0,), (1,), (9,), (4, 0), (5, 3), (6, 6))
_DRAWN, _WORKLOADS = 16, 20

_SOURCE = """import torch
class Model(torch.nn.Module):
    def forward(self, x, y):
        return {body}
def get_inputs():
    return [torch.randint(0, {most}, {shape}).to(torch.{kind}) for _ in range(2)]
"""

_ALL = list(itertools.product(_BODIES, _TYPES, _SHAPES))


@pytest.mark.parametrize("body, kind, shape", random.Random(f"odd types {SEED}").sample(_ALL, _DRAWN))
def test_a_mixed_workload_takes_any_type_and_shape(client, write_problem, body, kind, shape):
    source = _SOURCE.format(body=_BODIES[body], most=2 if kind == "bool" else 9, shape=shape, kind=kind)
    client.load(write_problem(source=source))
    for number in range(_WORKLOADS):
        client.session.prepare({"workload": 100 + number, "distribution": MIXED})


def test_a_number_that_is_compared_may_be_beyond_a_type(client, write_problem):
    footer = "def get_inputs():\n    return [torch.randint(0, 100, (40,)).to(torch.int8)]\n"
    client.load(write_problem("return (x.int() > 150).float() + (x.long() == 160)", footer=footer))
    client.session.prepare({"workload": 100, "distribution": MIXED})
