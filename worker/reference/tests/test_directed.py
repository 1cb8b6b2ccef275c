# SPDX-License-Identifier: Apache-2.0
"""Inputs that take values between operators where public inputs never do."""

import pytest
import torch
from mtmc_reference.distribution import DIRECTED, DISTRIBUTIONS
from mtmc_reference.parameters import AS_MADE
from mtmc_reference.workload import Key

_SEED = 100 + DISTRIBUTIONS.index(DIRECTED) + 1
_RAND = """
def get_inputs():
    return [torch.rand(64, 16)]

def get_init_inputs():
    return []
"""


def refused_on(client, candidate):
    """Numbers of the workloads that refuse a program."""
    numbers = [(0, None), *enumerate(DISTRIBUTIONS, start=101), (AS_MADE + _SEED - 100, DIRECTED)]
    found = []
    for number, name in numbers:
        answer = client.check(candidate, number, *filter(None, [name]))
        if answer is not None and not answer["isCorrect"]:
            found.append(number)
    return found


def drawn(client, number=_SEED):
    return client.session._loaded._workloads.draw(Key(number, DIRECTED))


def test_what_is_defined_on_a_part_of_the_numbers_is_met_up_to_its_end(client, write_problem):
    client.load(write_problem("return torch.log(30 - x * x * x)", footer=_RAND))

    def honest(tensors):
        return torch.log(30 - tensors["x"] * tensors["x"] * tensors["x"])

    def short(tensors):
        """Right up to twice what was drawn."""
        cube = (tensors["x"] ** 3).clamp(max=8.0)
        return torch.log(30 - cube)

    assert not refused_on(client, honest)
    assert _SEED in refused_on(client, short)


def test_a_guard_behind_a_product_is_met(client, write_problem):
    text = "a, b = x[:, :8], x[:, 8:]\nd = (a * b).sum(-1)\nreturn d / (d.abs() + 1e-3)"
    client.load(write_problem(text))

    def program(guard):
        def run(tensors):
            d = (tensors["x"][:, :8] * tensors["x"][:, 8:]).sum(-1)
            return d / (d.abs() + guard)

        return run

    assert not refused_on(client, program(1e-3))
    assert refused_on(client, program(1e-4))


@pytest.mark.parametrize(
    "forward, init",
    [
        ("return torch.relu_(self.norm(x) * 2)", "self.norm = nn.BatchNorm1d(16)"),
        ("return self.layer(F.dropout(x, 0.5))", "self.layer = nn.Linear(16, 4)"),
        ("return (x @ x.T).softmax(-1)", "pass"),
        ("return x.sum()", "pass"),
        ("return self.cell(x.view(4, 8, 16))[0]", "self.cell = nn.LSTM(16, 8)"),
    ],
)
def test_models_of_all_kinds_are_followed(client, write_problem, forward, init):
    dropped = client.load(write_problem(forward, init=init))["droppedDistributions"]

    assert DIRECTED not in dropped
    x, plain = drawn(client)[0], client.session._loaded._workloads.draw_own(Key(1))[0]
    assert x.isfinite().all() and not torch.equal(x, plain)


def test_the_same_inputs_are_drawn_again(client, write_problem):
    client.load(write_problem("return torch.tanh(x).square().sum(-1)"))
    workloads = client.session._loaded._workloads
    first = workloads.draw_own(Key(_SEED, DIRECTED))
    workloads.draw_own(Key(3))

    assert torch.equal(first[0], workloads.draw_own(Key(_SEED, DIRECTED))[0])
    assert not torch.equal(first[0], workloads.draw_own(Key(AS_MADE + 16, DIRECTED))[0])


def test_what_has_no_gradient_is_dropped_by_name(client, write_problem):
    dropped = client.load(write_problem("return torch.sign(x.detach())"))["droppedDistributions"]

    assert dropped[DIRECTED] == "no value between operators follows the inputs"

