# SPDX-License-Identifier: Apache-2.0
"""Means that are taken off many elements, and inputs on a grid before them."""

import numpy
import pytest
import torch
from mtmc_reference import float_ways, sum_rounding
from mtmc_reference.centering import terms_of_means
from mtmc_reference.graph_domain import GraphDomain
from mtmc_reference.rounding import Disturbed, unit_of

_UNIT = unit_of(torch.float32)


@pytest.mark.parametrize(
    "forward, terms",
    [
        ("return x * 2", 0),
        ("return x.mean(-1)", 0),
        ("return x - x.mean(-1, keepdim=True)", 16),
        ("return x - x.sum(0) / 32", 32),
        ("return x.std(-1)", 16),
        ("return F.layer_norm(x, (32, 16))", 512),
        ("return F.batch_norm(x, None, None, training=True)", 32),
        ("return F.group_norm(x.view(4, 8, 16), 2)", 128),
    ],
)
def test_terms_of_a_mean_are_known(client, write_problem, forward, terms):
    assert terms_of_means(GraphDomain(client.load(write_problem(forward))["graph"])) == terms


@pytest.mark.parametrize("terms, count", [(5000, 1), (16384, 1), (16384, 2), (65536, 1)])
def test_no_order_rounds_a_sum_on_a_grid(terms, count):
    x = _on_grid(terms, count)

    total = x.double().sum(-1)
    running = torch.from_numpy(numpy.cumsum(x.numpy(), axis=-1, dtype="float32")[..., -1].copy())
    assert torch.equal(running.double(), total)
    assert sum_rounding.are_on_grid(x, terms, _UNIT)
    assert x.mean() / x.std() > 300


def test_other_elements_are_on_no_grid():
    x = torch.randn(4, 5000)
    assert not sum_rounding.are_on_grid(x, 5000, _UNIT)
    x[:, :4999] = 1024.0
    assert not sum_rounding.are_on_grid(x, 5000, _UNIT)


def test_means_on_a_grid_are_disturbed_less():
    found = []
    for x in (_on_grid(16384), torch.randn(4, 16384) + 1000):
        with Disturbed(_UNIT):
            y = x.mean(-1)
        found.append(((y - x.mean(-1)) / x.mean(-1)).abs().max().item())
    assert found[0] < 1e-5 and found[0] < 0.2 * found[1]


def test_what_copies_elements_is_not_disturbed():
    x = torch.randn(4, 6, 8)
    with Disturbed(_UNIT):
        y = x.transpose(0, 1).reshape(6, -1)
    assert torch.equal(y, x.transpose(0, 1).reshape(6, -1))


def _on_grid(terms, count=1):
    """The sum of so many tensors that went the first way of all."""
    generator = torch.Generator().manual_seed(1)
    first, *_ = float_ways.shifts_before_means(terms * count)
    tensors = [torch.randn(4, terms, generator=generator) for _ in range(count)]
    for tensor in tensors:
        first(tensor, generator, 0)
    return sum(tensors)
