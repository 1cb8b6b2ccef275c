# SPDX-License-Identifier: Apache-2.0
"""Of equal elements any may be picked, also where something is gathered by the places."""

import fairness
import pytest
import torch

from mtmc_reference.other_picks import OtherPicks
from mtmc_reference.ties import Ties

ALL = [fairness.STRICT, fairness.KERNELBENCH, fairness.TF32, fairness.HALF]
_COUNT = 3


def satisfied(function, inputs, program):
    return fairness.satisfied(function, inputs, program)


def scored(most=4, rows=40, columns=24):
    torch.manual_seed(1)
    return [torch.randint(0, most, (rows, columns)).float(), torch.randn(columns, 16)]


def last(s):
    """The last ones of those that are equal."""
    return s.shape[-1] - 1 - s.flip(-1).sort(dim=-1, descending=True, stable=True).indices[:, :_COUNT]


_GATHERED = {
    "gathered": lambda i, v: v[i],
    "summed": lambda i, v: v[i].sum(1),
    "largest": lambda i, v: v[i].amax(1),
    "counted": lambda i, v: torch.nn.functional.one_hot(i % 3, 3).sum(1),
    "looked up in a product": lambda i, v: v[i].mean(1) @ v.T,
}


@pytest.mark.parametrize("name", _GATHERED)
def test_what_is_gathered_by_other_places_of_equal_elements_is_right(name):
    gathered = _GATHERED[name]

    def function(s, v):
        return gathered(s.topk(_COUNT, -1).indices, v)

    def with_last(s, v):
        return gathered(last(s), v)

    def of_smallest(s, v):
        return gathered(last(-s), v)

    def of_zeros(s, v):
        return function(s, v) * 0

    assert not torch.equal(function(*scored()), with_last(*scored()))
    assert satisfied(function, scored(), with_last) == ALL
    assert satisfied(function, scored(), of_smallest) == []
    assert satisfied(function, scored(), of_zeros) == []


def test_what_no_pick_decides_is_judged_as_ever():
    """Two equal ones that are both picked leave a third one no place."""
    s, v = scored(1000)
    s[:, 5] = s[:, 9] = 2000

    def function(s, v):
        return v[s.topk(2, -1).indices].sum(1)

    def third(s, v):
        return v[s.topk(3, -1).indices[:, 1:]].sum(1)

    assert satisfied(function, [s, v], third) == []
    assert satisfied(function, [s, v], lambda s, v: v[s.topk(2, -1).indices.flip(1)].sum(1)) == ALL


def test_a_stable_sort_leaves_nothing_open():
    def function(s, v):
        return v[s.sort(dim=-1, stable=True).indices]

    def reversed_ties(s, v):
        return v[s.shape[-1] - 1 - s.flip(-1).sort(dim=-1, stable=True).indices]

    assert satisfied(function, scored(), reversed_ties) == []


def test_a_model_that_picks_nothing_is_run_once_more_and_one_without_ties_too():
    x, v = scored()
    x = x + torch.rand(x.shape) / 2
    for model, has_picks in ((lambda: x @ v, False), (lambda: v[x.topk(2, -1).indices], True)):
        runs = []

        def run(observer):
            runs.append(observer)
            with observer:
                return [model()]

        ties = Ties(run, [model()], torch.device("cpu"))
        for _ in range(2):
            assert ties.replaced([torch.zeros_like(model())], lambda index: False) is None
        assert len(runs) == 1 and ties.has_picks == has_picks


@pytest.mark.parametrize("number", [0, 1, 2, 3, 35])
def test_other_picks_are_as_good(number):
    s, _ = scored()
    models = (
        lambda: s.topk(_COUNT, -1),
        lambda: s.topk(_COUNT, 0, largest=False, sorted=False),
        lambda: s.sort(1, descending=True),
        lambda: s.max(1),
        lambda: s.min(0, keepdim=True),
        lambda: s.kthvalue(4, 1),
        lambda: s.median(1),
        lambda: s.long().topk(_COUNT, -1),
        lambda: (s.amax(1), s.argmax(1)),
        lambda: (s.amax().view(1), s.argmax().view(1)),
    )
    for model in models:
        values, places = model()
        observer = OtherPicks(number)
        with observer:
            others, picked = model()
        assert observer.has_picked and observer.has_ties
        assert torch.equal(values.sort(0).values, others.sort(0).values)
        assert picked.shape == places.shape
