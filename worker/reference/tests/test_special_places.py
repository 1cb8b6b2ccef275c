# SPDX-License-Identifier: Apache-2.0
"""Special whole numbers stand wherever a program may look."""

import pytest
import torch
from mtmc_reference.end_ways import ends_of

_IGNORED, _SEEDS = -100, range(50)


def _ignored(shape, seed, **compared):
    tensor = torch.zeros(shape, dtype=torch.int64)
    special = () if compared else (_IGNORED,)
    ends_of(0, 32, special, **compared)(tensor, torch.Generator().manual_seed(seed))
    return tensor == (7 if compared else _IGNORED)


@pytest.mark.parametrize("shape", [(32, 33), (16, 5), (64, 2), (3, 8, 4)])
@pytest.mark.parametrize("compared", [{}, {"compared": (7,)}])
def test_each_column_and_both_end_rows_have_one(shape, compared):
    for seed in _SEEDS:
        is_ignored = _ignored(shape, seed, **compared).view(-1, shape[-1])
        assert is_ignored.any(0).all() and is_ignored[0].any() and is_ignored[-1].any()


@pytest.mark.parametrize("extent", [2, 9, 33, 1000])
def test_both_ends_of_a_vector_are_one_and_not_all_of_it(extent):
    found = torch.stack([_ignored((extent,), seed) for seed in _SEEDS])
    assert found[:, 0].all() and found[:, -1].all()
    assert extent == 2 or found.double().mean() < 0.6


def test_most_of_a_table_is_something_else():
    assert all(_ignored((32, 33), seed).double().mean() < 0.5 for seed in _SEEDS)
