# SPDX-License-Identifier: Apache-2.0
"""What operators say about the values of an input."""

import pytest
from mtmc_reference.graph_domain import GraphDomain

_SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(50, 4, padding_idx=3)

    def forward(self, x, i):
        return {body}

def get_inputs():
    return [torch.randn(8, 16), {value}]

def get_init_inputs():
    return []
"""
_INTEGERS = "torch.arange(8)"
_PROBABILITIES = "torch.rand(8, 16)"


@pytest.fixture
def domain(client, write_problem):
    def load(body, value=_INTEGERS):
        found = client.load(write_problem(source=_SOURCE.format(body=body, value=value)))
        return GraphDomain(found["graph"])

    return load


@pytest.mark.parametrize(
    "body, legal, special",
    [
        ("self.e(i)", (0, 49), (3,)),
        ("self.e(i.view(2, 4).t())", (0, 49), (3,)),
        ("x[i]", (0, 7), (-1, -8)),
        ("x[:, i]", (0, 15), (-1, -16)),
        ("x.gather(1, i[:, None])", (0, 15), ()),
        ("torch.index_select(x, 1, i)", (0, 15), ()),
        ("F.cross_entropy(x, i)", (0, 15), (-100,)),
        ("F.nll_loss(x, i, ignore_index=2)", (0, 15), (2,)),
        ("x[i] + self.e(i).sum()", (0, 7), (-1, -8, 3)),
    ],
)
def test_an_index_is_legal_below_a_size(domain, body, legal, special):
    uses = domain(body).uses("i")

    assert uses.legal == legal and uses.is_restricted
    assert sorted(uses.special) == sorted(special)


@pytest.mark.parametrize("body", ["x[:, (i + 1) % 8]", "self.e(i.clamp(0, 4))", "x[i & 3]"])
def test_what_becomes_an_index_within_numbers_of_the_code_is_not_restricted(domain, body):
    uses = domain(body).uses("i")

    assert uses.legal is None and not uses.is_restricted


@pytest.mark.parametrize("body", ["x + i[:, None]", "x * (i > 3)[:, None]", "F.mse_loss(x[0, :8], i)"])
def test_arithmetic_restricts_nothing(domain, body):
    uses = domain(body).uses("i")

    assert uses.legal is None and not uses.is_restricted


@pytest.mark.parametrize(
    "body",
    [
        "x[x.argmin(0)]",
        "x.gather(1, x.topk(3, 1).indices)",
        "x.gather(0, x.sort(0).indices)",
        "x[:, x.max(0).indices.clamp(max=9)]",
        "x[(x > 0).sum(0) % 8]",
        "x[(x > 0).long()[:, 0]]",
    ],
)
def test_values_among_which_something_is_found_are_not_restricted(domain, body):
    assert not domain(body).uses("x").is_restricted


@pytest.mark.parametrize("body", ["x[x.long()[0]]", "x[x.sort(0).values.long()[0]]"])
def test_values_that_become_an_index_are_restricted(domain, body):
    assert domain(body).uses("x").is_restricted


@pytest.mark.parametrize("body", ["x[i * 1]", "x[:, (i + 1) // 8]", "self.e(i.clamp(max=4))"])
def test_what_becomes_an_index_later_is_restricted(domain, body):
    uses = domain(body).uses("i")

    assert uses.legal is None and uses.is_restricted


@pytest.mark.parametrize(
    "body, is_written",
    [
        ("x.index_copy(0, i, x)", True),
        ("x.scatter(0, i[:, None], x)", True),
        ("x.scatter(0, i[:, None], 1.0)", False),
        ("x.index_put((i,), x[0, 0])", False),
        ("x.index_put((i,), x[0])", True),
        ("x.index_add(0, i, x)", False),
        ("x.scatter_add(0, i[:, None], x)", False),
    ],
)
def test_places_that_are_overwritten_are_known(domain, body, is_written):
    assert domain(body).uses("i").is_written == is_written


def test_probabilities_are_known(domain):
    found = domain("F.binary_cross_entropy(i.flatten(), x.sigmoid().flatten())", _PROBABILITIES)

    assert found.uses("i").is_probability and not found.uses("x").is_probability


def test_bounds_of_operators_are_known(domain):
    found = domain("F.relu6(x) + x.clamp(-2, 5) + torch.where(x > 0.25, x, 0.0) + i[:, None]")

    assert set(found.bounds()) == {0.0, 6.0, -2.0, 5.0, 0.25}
