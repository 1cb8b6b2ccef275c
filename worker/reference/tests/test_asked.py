# SPDX-License-Identifier: Apache-2.0
"""What the operators of a graph ask of mixed workloads, and what these do."""

import pytest
import torch

from mtmc_reference import asked, rounding
from mtmc_reference.graph_asks import asks
from mtmc_reference.graph_domain import GraphDomain, Uses
from mtmc_reference.landmarks import landmarks

_ASKS = {
    "return (x[:, None] - self.c).square().sum(-1)": {("beside", ("x", "c")), ("far", ("x", "c"))},
    "return (x[:, None] - x).square().sum(-1)": {("beside", ("x",)), ("far", ("x",))},
    "return (self.l(x)[:, None] - self.c).square().sum(-1)": {("off", ("l_bias", "c"))},
    "return (x[:, None] - self.c.exp()).square().sum(-1)": set(),
    "return (x - x.mean(-1, keepdim=True)) / 3": set(),
    "i = (x[:, :3] * 2).floor().long(); return (i[:, None] == i).all(-1).sum(-1)": set(),
    "i = self.i; return x * ((i[:, None] == i).all(-1).sum(-1).float().mean())": {("joined", ("i",))},
    "return x * (self.a == self.b[0]).any() * (self.a < self.b).any()": {("joined", ("a", "b"))},
    "return x * (self.a == 3).any()": set(),
    "return x * (self.a[:, None] - self.b).abs().amax()": set(),
    "p = torch.minimum(self.a.clamp(0, 6), torch.arange(7)); return x * self.v[p[p]].sum()": {("followed", ("a",))},
    "return torch.where(((x > 0).sum(-1) >= 3)[:, None], x, -x)": {("count", 3)},
    "return torch.where((x.sum(-1) >= 3)[:, None], x, -x)": set(),
    "return (x / self.s).round()": {("halves", 0)},
    "return x.round()": set(),
    "return torch.floor(torch.log2(x.abs() + 1))": {("powers", 2)},
    "return torch.where(x > 1000, x, -x)": {("powers", 10)},
    "return x / 10 + x // 3": set(),
    "return x // 10": {("powers", 10)},
    "return torch.asinh(x)": {("huge", 0)},
}


@pytest.mark.parametrize("forward", _ASKS)
def test_a_graph_asks_for_what_its_operators_need(client, write_problem, forward):
    init = "self.c = nn.Parameter(torch.randn(5, 16)); self.s = nn.Parameter(torch.tensor(0.1))\n"
    init += "self.l = nn.Linear(16, 16); self.v = nn.Parameter(torch.randn(7))\n"
    init += "self.register_buffer('i', torch.randint(0, 9, (8, 3)))\n"
    init += "self.register_buffer('a', torch.randint(0, 9, (7,))); self.register_buffer('b', torch.randint(0, 9, (7,)))"
    graph = client.load(write_problem(forward, init=init))["graph"]
    assert set(asks(GraphDomain(graph))) == _ASKS[forward]


def planned(ask, seed=1):
    return asked.plan(6, seed, [ask])


def went(way, tensor, seed=2):
    tensor = tensor.clone()
    way(tensor, torch.Generator().manual_seed(seed))
    return tensor


def test_only_graphs_that_ask_and_some_numbers_have_a_plan():
    far = ("far", ("x", "c"))
    assert asked.plan(6, 1, ()) is None and asked.plan(7, 1, [far]) is None
    assert planned(far) is not None
    many = [far, ("beside", ("x", "c")), ("huge", 0), ("count", 3)]
    assert sum(asked.plan(number, 1, many) is not None for number in range(417, 437)) == 10


def test_what_is_beside_is_near_rows_that_all_tensors_have():
    ways = planned(("beside", ("x", "c"))).named
    x, c = went(ways["x"], torch.randn(40, 8)), went(ways["c"], torch.randn(12, 8), seed=3)
    distances = (x[:, None] - c).double().norm(dim=-1)
    assert (distances < 0.1).any() and (distances > 0.5).any()


def test_far_tensors_keep_their_distances():
    ways = planned(("far", ("x", "c"))).named
    x, c = torch.randn(40, 8), torch.randn(12, 8)
    moved = went(ways["x"], x)[:, None] - went(ways["c"], c)
    assert torch.allclose(moved, x[:, None] - c, atol=1e-2) and went(ways["x"], x).abs().min() > 50


def test_places_lead_as_far_as_there_is():
    kinds = set()
    for seed in range(12):
        places = went(planned(("followed", ("i",)), seed).named["i"], torch.arange(40).flip(0))
        at, steps = torch.tensor(39), 0
        while at > 0 and steps < 40:
            at, steps = places[at], steps + 1
        kinds.add("circle" if len(set(places.tolist())) == 40 else "chain")
        assert steps > 5 or kinds == {"circle"}
    assert kinds == {"circle", "chain"}


def test_as_many_stand_out_as_is_compared_with():
    plan = planned(("count", 3))
    counts = (went(plan.inputs, torch.randn(64, 24)) > 0).sum(1)
    assert 3 in counts and 2 in counts
    assert 3 in went(plan.masks, torch.rand(64, 24) < 0.5).sum(1)


def test_quotients_are_halves():
    plan = planned(("halves", 0))
    ratio = went(plan.inputs, torch.randn(64, 24)) / went(plan.vectors, torch.tensor(0.03))
    assert torch.equal(ratio * 2, (ratio * 2).round()) and (ratio % 1 == 0.5).any()


def test_elements_are_powers_and_next_to_them():
    x = went(planned(("powers", 2)).inputs, torch.randn(64, 24))
    mantissas = torch.frexp(x).mantissa.abs()
    assert (mantissas == 0.5).any() and (mantissas > 0.99999).any()
    whole = went(planned(("powers", 10)).numbers, torch.arange(500))
    assert {99, 100, 101, 999999} <= set(whole.tolist())


def test_squares_leave_the_range():
    x = went(planned(("huge", 0)).inputs, torch.randn(64, 24))
    assert x.isfinite().all() and (x * x).isinf().double().mean() > 0.9


def test_numbers_of_a_calendar_are_met_inside_of_the_domain():
    uses = Uses(divisors=(4, 100, 400), compared=(0, 1950))
    assert {1900, 2000, 2100, 1950, 1999} <= set(uses.turning(1900, 2100))
    assert all(1901 <= value <= 1999 for value in uses.turning(1901, 1999))
    assert Uses(divisors=(3,)).turning(float("-inf"), 3) == []


@pytest.mark.parametrize("forward, has_zero", [("torch.atan(1 / x)", True), ("torch.atan2(x * 2, x)", True), ("1 / x", False)])
def test_both_zeros_are_met_where_a_divisor_shows_its_sign(client, write_problem, forward, has_zero):
    graph = client.load(write_problem(f"return {forward}"))["graph"]
    domain = GraphDomain(graph)
    marks = landmarks(domain, next(e["name"] for e in graph["inputs"]))
    signs = {str(point) for mark in marks for point in mark.points}
    assert ("-0.0" in signs) == has_zero


def test_a_division_by_a_power_of_two_rounds_nothing():
    x = torch.arange(1, 9).double()
    for divisor, is_exact in ((torch.tensor(0.25).double(), True), (0.25, True), (3.0, False)):
        with rounding.Disturbed(2.0**-24):
            found = x / divisor
        assert torch.equal(found, x / divisor) == is_exact
