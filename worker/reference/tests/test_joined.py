# SPDX-License-Identifier: Apache-2.0
"""Rows that are one for whoever packs their numbers into one word."""

import pytest
import torch
from mtmc_reference import joined

_PACKED = {
    "by 100": lambda r: (r[..., 0] * 100 + r[..., 1]) * 100 + r[..., 2],
    "by 1,000": lambda r: (r[..., 0] * 1000 + r[..., 1]) * 1000 + r[..., 2],
    "by 65,536": lambda r: (r[..., 0] * 65536 + r[..., 1]) * 65536 + r[..., 2],
    "in 8 bits": lambda r: ((r[..., 0] & 255) << 16) | ((r[..., 1] & 255) << 8) | (r[..., 2] & 255),
    "in 10 bits": lambda r: ((r[..., 0] & 1023) << 20) | ((r[..., 1] & 1023) << 10) | (r[..., 2] & 1023),
    "in 32 bits": lambda r: (r[..., 0] << 32) + r[..., 1] + r[..., 2],
}


def collide(rows, packed):
    """Whether two rows are not one and packed into the same."""
    words = packed(rows)
    is_one = (rows[:, None] == rows).all(-1)
    return bool(((words[:, None] == words) & ~is_one).any())


def went(ways, seed=3, **tensors):
    found = {}
    for number, (name, tensor) in enumerate(tensors.items()):
        found[name] = tensor.clone()
        ways[name](found[name], torch.Generator().manual_seed(seed + number))
    return found


@pytest.mark.parametrize("packed", _PACKED.values(), ids=_PACKED)
@pytest.mark.parametrize("is_reversed", (False, True))
def test_rows_of_three_columns_collide(packed, is_reversed):
    x = went(joined.ways(["x"], 7, is_reversed), x=torch.randint(0, 9, (48, 3)))["x"]
    assert collide(x.flip(1) if is_reversed else x, packed) and (x[:, None] == x).all(-1).sum() > 48


@pytest.mark.parametrize("packed", _PACKED.values(), ids=_PACKED)
def test_three_inputs_collide_together(packed):
    a, b, c = torch.randint(0, 9, (3, 48))
    found = went(joined.ways(["a", "b", "c"], 7, False), a=a, b=b, c=c)
    assert collide(torch.stack([found[name] for name in "abc"], 1), packed)


def test_a_list_has_rows_for_those_that_are_looked_for():
    ways = joined.ways(["i", "c"], 5, False)
    found = went(ways, i=torch.randint(0, 9, (40, 3)), c=torch.randint(0, 9, (16, 3)))
    i, c = found["i"], found["c"]
    assert (i[:, None] == c).all(-1).any()
    assert collide(torch.cat([i, c]), _PACKED["in 10 bits"])


def test_floats_and_narrow_types_keep_what_they_hold():
    x = went(joined.ways(["x"], 7, False), x=torch.randn(48, 3))["x"]
    assert torch.equal(x * 2, (x * 2).round()) and x.abs().max() > 1e5
    x = went(joined.ways(["x"], 7, False), x=torch.zeros(48, 3, dtype=torch.int16))["x"]
    assert x.min() >= 0 and x.max() > 1000


def test_steps_of_one_number():
    x = torch.randint(0, 9, (64,))
    joined.at(1000)(x, torch.Generator().manual_seed(1))
    low = x.min().item()
    assert set(x.tolist()) == {low, low + 1, low + 1000, low + 1001}


def test_types_without_room_for_two_numbers_stay():
    for dtype in (torch.bool, torch.int8):
        x = torch.zeros(48, 3, dtype=dtype)
        assert torch.equal(went(joined.ways(["x"], 7, False), x=x.clone())["x"], x)
    nothing = torch.zeros(0, dtype=torch.int64)
    joined.at(1000)(nothing, torch.Generator().manual_seed(1))
