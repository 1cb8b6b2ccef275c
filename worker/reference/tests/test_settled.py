# SPDX-License-Identifier: Apache-2.0
"""What has reached the end of its range, or is a sum of whole numbers, is not disturbed."""

import pytest
import torch
from mtmc_reference.rounding import Disturbed, unit_of


def disturbed(function, x):
    with Disturbed(unit_of(torch.float32)):
        return function(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("function", [torch.sigmoid, torch.tanh, torch.erf, lambda x: x.softmax(-1)])
def test_what_is_at_an_end_stays_there_and_the_rest_does_not(function, dtype):
    x = torch.tensor([[1e6, -1e6, 3.0], [0.5, 0.1, -0.2], [30.0, 0.0, 0.0]], dtype=dtype)

    y, other = function(x), disturbed(function, x)

    assert other[0, 0] == y[0, 0] == 1
    assert (other[1] != y[1]).all()


@pytest.mark.parametrize("function", [torch.sigmoid, lambda x: x.softmax(-1)])
def test_ones_that_fp64_does_not_have_are_disturbed(function):
    x = torch.tensor([[24.0, 0.0]]).expand(64, 2).clone()
    y = function(x)
    assert (y[:, 0] == 1).all() and (disturbed(function, x)[:, 0] < 1).any()


@pytest.mark.parametrize("function", [lambda x: x.sum(-1), lambda x: x.cumsum(-1), lambda x: x.sum()])
def test_sums_of_whole_numbers_are_exact_as_far_as_the_type_counts(function):
    x = torch.randint(-3, 4, (8, 40)).float()
    assert torch.equal(disturbed(function, x), function(x))
    for far in (x + 0.5 * torch.rand(x.shape), x.abs() * 2.0**24):
        assert not torch.equal(disturbed(function, far), function(far))


def test_sums_of_steps_are_the_same_in_any_order():
    """Amounts in quarters, on which thresholds are met exactly."""
    x = torch.randint(-40, 41, (16, 64), generator=torch.Generator().manual_seed(0)) * 0.25
    with Disturbed(unit_of(torch.float32)):
        assert torch.equal(x.cumsum(1), x.double().cumsum(1).float())
        assert torch.equal(x.sum(1), x.double().sum(1).float())
        # Of others some are rounded.
        assert not torch.equal((x + 0.1).sum(1), (x.double() + 0.1).sum(1).float())


def test_picks_of_a_running_maximum_are_not_rounded():
    x = torch.randn(16, 64, generator=torch.Generator().manual_seed(0))
    own = [x.cummax(1).values, x.median(1).values, x.copysign(-x), x.kthvalue(3, 1).values]
    with Disturbed(unit_of(torch.float32)):
        made = [x.cummax(1).values, x.median(1).values, x.copysign(-x), x.kthvalue(3, 1).values]
    assert all(torch.equal(a, b) for a, b in zip(own, made))
