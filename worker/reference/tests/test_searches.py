# SPDX-License-Identifier: Apache-2.0
"""Searches that begin at a finite number are refused, and searches are not."""

import os

import pytest
import searches
import torch
from assumed import workloads
from mtmc_reference import extrema
from mtmc_reference.graph_domain import GraphDomain

# The same for every change, so that a failure is the change's; another one draws others.
_SEED = os.environ.get("MTMC_SEARCHES_SEED", "20261129")
_PARTS, _PER_PART = 2, 6


@pytest.mark.parametrize("part", range(_PARTS))
def test_searches_from_a_number_are_refused_and_searches_are_not(client, tmp_path, part):
    for drawn in searches.draw(f"{_SEED} {part}", _PER_PART):
        path = tmp_path / "problem.py"
        path.write_text(drawn.source())
        client.load(path)
        assert not searches.refusals(client, drawn, drawn.after, workloads()), drawn.title
        assert searches.refusals(client, drawn, drawn.twin, workloads()), drawn.title


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("sign", [-1, 1])
def test_all_elements_go_to_one_side_in_their_order(dtype, sign):
    x = torch.randn(64, dtype=torch.float64).to(dtype)
    for change in extrema.far(sign, dtype):
        y = x.clone()
        change(y)
        assert y.isfinite().all() and (sign * y > 400).all()
        assert (y[x.argsort()].diff() >= 0).all()


def test_of_a_difference_both_sides_go_apart(client, write_problem):
    body = "z = x.flip(0)\nreturn (F.pad(x, (1, 1)).unfold(-1, 3, 1) - self.w * self.v).amax(-1)"
    init = "self.w = nn.Parameter(torch.randn(3))\nself.v = nn.Parameter(torch.randn(3))"
    graph = client.load(write_problem(body, init=init))["graph"]
    names = {entry.get("target") or entry["name"]: entry["name"] for entry in graph["inputs"]}
    domain = GraphDomain(graph)

    sides = {target: extrema.side(domain, name) for target, name in names.items()}

    assert sides == {"x": 1, "w": -1, "v": -1}
    factors = {target for target, name in names.items() if extrema.is_factor(domain, name)}
    assert factors == {"w", "v"}
