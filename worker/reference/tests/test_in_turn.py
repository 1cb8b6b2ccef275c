# SPDX-License-Identifier: Apache-2.0
"""Few whole numbers of a small domain have each value, workload by workload."""

import pytest
import torch
from mtmc_reference import distribution, in_turn
from mtmc_reference.distribution import MIXED
from mtmc_reference.domain import domain_of
from mtmc_reference.graph_domain import Uses

# Numbers of workloads in which tensors go apart, and together.
_NUMBERS, _TOGETHER = (317, 318, *range(417, 437)), range(517, 529)


def values(tensor, low, high, before, numbers):
    turns = in_turn.turns(tensor, low, high, before)
    found = []
    for number in numbers:
        x = tensor.clone()
        turns(number)(x, None)
        found.append(x)
    return torch.stack(found)


def test_one_element_has_each_value():
    found = values(torch.zeros(1, dtype=torch.long), 3, 14, 0, range(280, 292))
    assert set(found.view(-1).tolist()) == set(range(3, 15))


def test_both_columns_have_each_value_and_all_pairs():
    found = values(torch.zeros(3, 2, dtype=torch.long), 0, 5, 0, range(280, 292)).view(-1, 2)
    assert len(set(map(tuple, found.tolist()))) == 36


def test_two_inputs_have_all_pairs():
    a = values(torch.zeros(4, dtype=torch.long), 0, 5, 0, range(100, 109)).view(-1)
    b = values(torch.zeros(4, dtype=torch.long), 0, 5, 1, range(100, 109)).view(-1)
    assert len(set(zip(a.tolist(), b.tolist()))) == 36


def test_many_elements_and_large_domains_are_left_to_chance():
    assert in_turn.turns(torch.zeros(1000, dtype=torch.long), 0, 11, 0) is None
    assert in_turn.turns(torch.zeros(4, dtype=torch.long), 0, 999, 0) is None
    assert in_turn.turns(torch.zeros(4, dtype=torch.long), 5, 5, 0) is None


@pytest.mark.parametrize("numbers", (_NUMBERS, _TOGETHER))
def test_an_index_has_each_value_in_the_workloads_of_a_winner(numbers):
    draws = [[torch.tensor([value])] for value in (3, 4, 5)]
    changer = distribution.Changer(draws, {0: Uses(legal=(0, 11), is_restricted=True)}, seed_of=lambda name: 9)
    found = set()
    for number in numbers:
        name = f"{MIXED} {number}"
        if changer.ways(name):
            found.add(changer.apply(name, [torch.tensor([3])], {0: 0}, number)[0].item())
    assert found == set(range(12))


def test_numbers_of_the_graph_next_to_what_was_seen_are_values():
    draws = [torch.tensor([2, 4]), torch.tensor([3, 4])]
    assert {0, 5} <= set(domain_of(draws, Uses(compared=(0, 5, 900))).values.tolist())
    domain = domain_of(draws, Uses(compared=(0, 5), is_restricted=True))
    assert (domain.low, domain.high) == (2, 4)
