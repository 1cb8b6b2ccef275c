# SPDX-License-Identifier: Apache-2.0
"""Frames: what one looks at is alike, and the rest is as it was."""

import pytest
import torch
from mtmc_reference import frames


def framed(way, *shape):
    torch.manual_seed(0)
    x = torch.randn(shape)
    y = x.clone()
    way(y, torch.Generator().manual_seed(1))
    return x, y


def test_first_and_last_rows_columns_and_elements_are_zero_and_others_stay():
    x, y = framed(frames.zeros, 12, 16)

    for edge in (y[0], y[1], y[-1], y[6], y[:, 0], y[:, -1], y[:, 8]):
        assert (edge == 0).all()
    assert torch.equal(y[2:6, 2:8], x[2:6, 2:8])


@pytest.mark.parametrize("sign", [1, -1])
def test_a_frame_has_one_number_of_the_size_of_the_tensor(sign):
    _, y = framed(frames.of_size(sign), 12, 16)

    assert (y[0] == y[1, 0]).all() and 0.4 < sign * y[0, 0] < 2.5


@pytest.mark.parametrize("shape", [(), (1,), (2,), (3,), (1, 1, 3, 3), (4, 2, 1, 5), (7, 0)])
def test_of_any_shape_most_stays(shape):
    for way in (frames.zeros, frames.ones, frames.of_size(1)):
        x, y = framed(way, *shape)
        left = (x == y).float().mean() if x.numel() else 1.0
        assert left >= 1 / 2 ** len(shape)


def test_each_tap_of_a_short_filter_goes_at_some_time():
    taps = set()
    for seed in range(20):
        y = torch.ones(8, 8, 3)
        frames.zeros(y, torch.Generator().manual_seed(seed * 7919))
        taps |= {place for place in range(3) if (y[..., place] == 0).all()}
    assert taps == {0, 1, 2}


def test_a_size_of_zeros_is_one():
    y = torch.zeros(4)
    frames.of_size(-1)(y, torch.Generator().manual_seed(1))
    assert y.min() == -1
