# SPDX-License-Identifier: Apache-2.0
"""Indices are judged by the score of what was picked, in fp64."""

import fairness
import pytest
import torch

from mtmc_reference.picks import Scores
from mtmc_reference.tensor_core import rounded

ALL = [fairness.STRICT, fairness.KERNELBENCH, fairness.TF32, fairness.HALF]


def satisfied(function, inputs, program):
    return fairness.satisfied(function, inputs, program)


def scored(seed=1, rows=200, columns=64, close=1e-9):
    """Scores of which pairs are closer than rounding."""
    torch.manual_seed(seed)
    x = torch.randn(rows, 32)
    w = torch.randn(32, columns // 2).repeat(1, 2)
    return [x, w + close * torch.randn(32, columns)]


_PICKS = {
    "argmax": lambda s: s.argmax(1),
    "argmax of a view": lambda s: s.argmax(1).view(-1, 2).t().int(),
    "argmin with its axis": lambda s: s.argmin(0, keepdim=True),
    "max": lambda s: s.max(1).indices,
    "first of sort": lambda s: s.sort(1, descending=True).indices[:, 0],
    "topk": lambda s: s.topk(4, 1).indices,
    "kthvalue": lambda s: s.kthvalue(3, 1).indices,
    "argsort": lambda s: s.argsort(1),
    "everywhere": lambda s: s.argmax(),
}


@pytest.mark.parametrize("name", _PICKS)
def test_what_is_close_may_be_picked(name):
    pick = _PICKS[name]

    def in_parts(x, w):
        return pick(sum(x[:, i::4] @ w[i::4] for i in range(4)))

    assert satisfied(lambda x, w: pick(x @ w), scored(), in_parts) == ALL


@pytest.mark.parametrize("name", _PICKS)
def test_what_is_worse_may_not_be_picked(name):
    pick = _PICKS[name]

    def other(x, w):
        y = pick(x @ w)
        return (y + 1) % 32

    assert satisfied(lambda x, w: pick(x @ w), scored(), other) == []


def test_low_precision_picks_in_its_own_class():
    inputs = scored(close=2e-2)

    def by(brought):
        return lambda x, w: (brought(x) @ brought(w)).argmax(1)

    function = by(lambda x: x)
    bf16 = satisfied(function, inputs, by(lambda x: x.bfloat16().float()))
    assert fairness.HALF in bf16 and fairness.KERNELBENCH not in bf16
    tf32 = satisfied(function, scored(close=2e-3), by(rounded))
    assert fairness.TF32 in tf32 and fairness.STRICT not in tf32


def test_any_of_equal_scores_may_be_picked():
    x = torch.randint(0, 4, (50, 100)).float()

    def last(x):
        return 99 - x.flip(1).argmax(1)

    assert satisfied(lambda x: x.argmax(1), [x], last) == ALL
    assert satisfied(lambda x: x.long().argmax(1), [x], last) == ALL
    assert satisfied(lambda x: x.argmax(1), [x], lambda x: x.argmin(1)) == []


@pytest.mark.parametrize("wrong", [-1, 100, 1 << 40])
def test_an_index_out_of_range_is_none(wrong):
    x = torch.zeros(50, 100)

    def program(x):
        y = x.argmax(1)
        y[7] = wrong
        return y

    assert satisfied(lambda x: x.argmax(1), [x], program) == []


def test_no_element_is_picked_twice():
    x = torch.zeros(50, 100)

    def twice(x):
        return torch.zeros(50, 5, dtype=torch.long)

    assert satisfied(lambda x: x.topk(5, 1).indices, [x], twice) == []
    assert satisfied(lambda x: x.sort(1).indices, [x], lambda x: x.argsort(1).flip(1)) == ALL


def test_a_pooling_may_pick_any_of_equal_scores_in_its_window():
    x = torch.randint(3, (2, 3, 9, 11)).float()

    def pooled(x):
        return torch.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True)[1]

    def last(x):
        return 9 * 11 - 1 - pooled(x.flip(2, 3)).flip(2, 3)

    def elsewhere(x):
        # As large, and of the plane, but of another window.
        return x.flatten(2).argmax(2)[..., None, None].expand(2, 3, 5, 6).clone()

    assert not torch.equal(last(x), pooled(x))
    assert satisfied(pooled, [x], last) == ALL
    assert satisfied(pooled, [x], elsewhere) == []
    assert satisfied(pooled, [x], lambda x: torch.zeros_like(pooled(x))) == []


def test_other_whole_numbers_are_those_of_a_run_of_the_class():
    torch.manual_seed(5)
    inputs = [torch.randn(100, 64), torch.randn(64, 50)]

    def signs(brought):
        return lambda x, w: (brought(x) @ brought(w) > 0).long()

    function = signs(lambda x: x)
    assert satisfied(function, inputs, function) == ALL
    assert satisfied(function, inputs, signs(rounded)) == [fairness.TF32, fairness.HALF]
    assert satisfied(function, inputs, lambda x, w: 1 - function(x, w)) == []


def test_a_whole_number_may_lie_between_those_of_two_runs():
    """Where a running sum of probabilities is one but for rounding, an honest search for one
    ends at any place."""
    torch.manual_seed(5)
    inputs = [torch.randn(40, 64) * 30]

    def function(x, least=1.0):
        return (torch.softmax(x, 1).cumsum(1) < least).sum(1)

    bounds = [function(x) for x in (inputs[0], inputs[0].double())]
    assert not torch.equal(*bounds)
    assert satisfied(function, inputs, lambda x: (bounds[0] + bounds[1]) // 2) == ALL
    assert satisfied(function, inputs, lambda x: function(x, 0.99)) == []


def test_scores_of_a_run_that_is_made_again_are_those_of_the_last_attempt():
    x = torch.tensor([[1.0, 3.0, 2.0]])
    scores = Scores()
    for _ in range(2):
        with scores:
            picked = x.argmax(1)
    assert len(scores.picks) == 1
    assert scores.find(picked)[0] is scores.picks[0]
