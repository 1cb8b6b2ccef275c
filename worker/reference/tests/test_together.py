# SPDX-License-Identifier: Apache-2.0
"""Tensors of a mixed workload that go together."""

import itertools

import pytest
import torch
from mtmc_reference import distribution, mixed, together
from mtmc_reference.distribution import MIXED
from mtmc_reference.graph_domain import Uses
from mtmc_reference.graph_numbers import GraphNumbers
from mtmc_reference.plan import Plan
from mtmc_reference.workload import Key

_NUMBERS = range(together.FIRST, together.FIRST + 20)
# Seeds that are small and lie close have first draws that are alike.
_APART = 0x9E3779B97F4A7C15


def went(number, x, *parameters, seed=1):
    """What an input, and parameters, become in a workload of that number."""
    plan = together.plan(number, seed)
    ways = [plan.inputs, *(plan.vectors if p.dim() < 2 else plan.matrices for p in parameters)]
    found = []
    for tensor, way in zip((x, *parameters), ways):
        tensor = tensor.clone()
        if way:
            way(tensor, torch.Generator().manual_seed(number * _APART % 2**63))
        found.append(tensor)
    return found


def kind_of(x, moved, h, w):
    """What a workload has done to an input, a single number and a matrix."""
    if torch.equal(w[::2], w[1::2]):
        return "in pairs"
    if (moved[0] == moved[0, 0]).all():
        assert (moved[:, 0] == moved[0, 0]).all() and torch.equal(moved[2:4, 2:5], x[2:4, 2:5])
        return "framed"
    by = (moved - x).mean()
    if (moved - x).std() < 0.1 * by.abs():
        assert torch.allclose(h - 0.5, by, rtol=1e-3)
        return "moved"
    if (moved / x).std() > 1e-3 * (moved / x).mean().abs():
        return "on a grid"
    factor = (moved / x).mean()
    if torch.isclose(h / 0.5, factor, rtol=1e-3):
        return "scaled"
    if torch.isclose(h * factor, torch.tensor(0.5), rtol=1e-3):
        return "opposed"
    assert factor > 1e3 and h in (0, 1)
    return "at its ends"


def test_each_kind_comes_in_turn():
    assert together.plan(together.FIRST - 1, 1) is None
    x, kinds = torch.randn(8, 12), set()
    for number in _NUMBERS[:7]:
        kinds.add(kind_of(x, *went(number, x, torch.tensor(0.5), torch.randn(4, 6))))
    assert kinds == {"moved", "scaled", "opposed", "on a grid", "in pairs", "at its ends", "framed"}


def test_inputs_of_a_logarithm_are_next_to_one():
    x, found = torch.randn(8, 12), []
    for number in _NUMBERS[:8]:
        way = together.plan(number, 1, GraphNumbers(has_logarithm=True)).inputs
        y = x.clone()
        if way:
            way(y, torch.Generator().manual_seed(number * _APART % 2**63))
        found.append((y - 1).abs().max().item())
    assert any(9e-7 < away < 2e-3 for away in found)


def test_numbers_of_the_graph_have_kinds_of_their_own():
    numbers, found = GraphNumbers((1e-6,), (1e-6, 1e-3), (-1e4,)), []
    for number in _NUMBERS[:18]:
        plan = together.plan(number, 1, numbers)
        tensors = {"vectors": torch.tensor(0.5), "masks": torch.rand(6, 8) < 0.8}
        for kind, tensor in tensors.items():
            if way := getattr(plan, kind):
                way(tensor, torch.Generator().manual_seed(number * _APART % 2**63))
        found.append((tensors["vectors"].item(), (~tensors["masks"]).all(1).any().item()))
    assert any(1e-9 < s < 3e-3 for s, _ in found)
    assert any(s < -1e4 and has_closed for s, has_closed in found)


def test_on_a_grid_what_is_seldom_equal_is_so_often():
    x, h = torch.randn(16, 96), torch.tensor(0.5)
    met = 0
    for number, seed in itertools.product(_NUMBERS, range(4)):
        y, threshold = went(number, x, h, seed=seed)
        if len(y.unique()) < 12:
            met += bool((y.amax(1) - y.amin(1) == threshold).any())
    assert met >= 4


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 1, 5)])
@pytest.mark.parametrize("fill", [None, 0.0])
def test_ways_are_for_any_shape(shape, fill):
    for number in _NUMBERS:
        x = torch.randn(shape) if fill is None else torch.full(shape, fill)
        assert all(y.isfinite().all() for y in went(number, x, x, x.view(1, *shape)))


def test_whole_numbers_grow_beyond_their_narrower_type_where_factors_shrink():
    largest = 0
    for number, seed in itertools.product(_NUMBERS, range(4)):
        x, name = torch.randint(1, 100, (40,)), f"{MIXED} {number}"
        changer = distribution.Changer([[x]], seed_of=lambda name, s=seed: s * _APART % 2**63)
        if changer.ways(name):
            value = changer.apply(name, [x.clone()], {0: 0}, number)[0]
            assert (value > 0).all()
            largest = max(largest, value.max().item())
    assert largest > 2**32


def test_what_is_bound_or_narrow_does_not_go():
    ways = type("Ways", (), {"near": [lambda t, g: None], "first": [], "second": []})
    assert mixed.state_choice(ways, [], torch.randn(5), Uses(is_ordered=True)).kind == ""
    assert mixed.state_choice(ways, [], torch.randn(5).bfloat16(), Uses()).kind == ""
    assert mixed.state_choice(ways, [], torch.randn(5).bfloat16(), Uses(), name="b").name == ""
    assert mixed.state_choice(ways, [], torch.randn(5), Uses(is_ordered=True), name="b").name == ""
    assert mixed.state_choice(ways, [], torch.randn(5), Uses(), name="b").name == "b"
    assert mixed.state_choice(ways, [], torch.randn(5, 5), Uses()).kind == "matrices"
    assert mixed.state_choice(ways, [], torch.tensor(1.0), Uses()).kind == "vectors"


def test_before_waves_elements_are_far_and_their_squares_exact():
    found = 0
    for number in range(together.FIRST, together.FIRST + 12):
        way = together.plan(number, 1, GraphNumbers(has_wave=True)).inputs
        x = torch.randn(32, 24)
        if way:
            way(x, torch.Generator().manual_seed(number))
        is_far = x.isfinite().all() and 100 < x.abs().max() < 1e5 and len(x.unique()) < 40
        found += bool(is_far and torch.equal((x * x).double(), x.double().square()))
    assert found


def test_what_bears_nothing_alone_is_asked_about_together(client, write_problem):
    init = "self.c = nn.Parameter(torch.randn(6, 16))"
    client.load(write_problem("return torch.log_softmax(-(x[:, None] - self.c).square().sum(-1), -1)", init=init))
    loaded, far = client.session._loaded, 0
    for number in range(417, 437):
        client.session.prepare({"workload": number, "distribution": MIXED})
        key = Key(number, MIXED)
        with loaded._execution.in_state(loaded._states.of(key)):
            c = loaded._model.c.detach().mean()
        x = loaded._workloads.draw_own(key)[0].mean()
        # One that is far from the other would decide all of a softmax by rounding.
        far += bool(c.abs() > 50 and (x - c).abs() < 10)
    assert far


def test_names_say_what_goes():
    plan = Plan(named={"x": lambda tensor, _: tensor.add_(1)}).called(lambda way: way)
    choices = {name: mixed.Choice([[(1, mixed.stay)]], [], [], "inputs", name) for name in ("x", "z")}
    assert choices["x"].ways(6, 1, plan) == [plan.named["x"]] and choices["z"].ways(6, 1, plan) == []
