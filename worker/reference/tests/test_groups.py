# SPDX-License-Identifier: Apache-2.0
"""Root mean squares by row, channel and magnitude, and what is bounded by them."""

import math

import pytest
import torch

from mtmc_reference import groups
from mtmc_reference.compare import float_spreads
from mtmc_reference.layout import MAGNITUDES, layout

_SHAPES = [
    (),
    (5,),
    (64,),
    (65,),
    (1000,),
    (100, 3),
    (3, 100),
    (200, 70),
    (70, 9, 7),
    (8, 16, 12, 12),
    (1, 100, 100),
    (2, 3, 5000),
    (1, 3, 300_000),
]


def measure(y, r):
    return groups.measured([(y, r)], float_spreads([r]))[0]


def root_mean_square(x):
    return x.double().square().mean().sqrt().item()


def noisy(shape, dtype=torch.float32):
    generator = torch.Generator().manual_seed(math.prod(shape))
    r = torch.randn(shape, generator=generator).to(dtype)
    y = r.double() + 1e-3 * torch.randn(shape, generator=generator, dtype=torch.float64)
    return y.to(dtype), r


@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_every_group_is_the_root_mean_square_of_its_elements(shape, dtype):
    y, r = noisy(shape, dtype)
    found = measure(y, r)
    plan = found.layout

    error, flat = (y.double() - r.double()).reshape(-1), r.double().reshape(-1)
    for group in range(0, plan.rows, max(plan.rows // 7, 1)):
        part = slice(group * plan.row, (group + 1) * plan.row)
        assert found.error[group] == pytest.approx(root_mean_square(error[part]), rel=1e-4)
        assert found.size[group] == pytest.approx(root_mean_square(flat[part]), rel=1e-4)
    for channel in range(0, plan.channels, max(plan.channels // 7, 1)):
        part = (y.double() - r.double())[:, channel]
        group = plan.rows + channel
        assert found.error[group] == pytest.approx(root_mean_square(part), rel=1e-4)
        assert found.size[group] == pytest.approx(root_mean_square(r[:, channel]), rel=1e-4)
    assert found.scale == pytest.approx(root_mean_square(r), rel=1e-4)


def test_small_elements_are_compared_among_themselves():
    r = torch.full((4, 1000), 0.5)
    r[:, ::2] = 5e-5
    y = torch.where(r < 1e-2, 0.0, r)
    found = measure(y, r)

    lost = [g for g in range(len(found.error)) if found.error[g] > 0.99 * found.size[g] > 0]
    assert [found.name(group) for group in lost] == ["elements near 6e-05"]


def test_few_elements_of_a_magnitude_count_with_larger_ones():
    r = torch.ones(1000)
    r[:5] = 1e-4
    found = measure(torch.where(r < 1e-2, 0.0, r), r)

    assert (found.size[-MAGNITUDES:] > 0).sum() == 1


@pytest.mark.parametrize(
    "shape, rows, channels",
    [
        ((1000,), 1, 0),
        ((100, 3), 5, 3),
        ((3, 100), 3, 0),
        ((200, 70), 200, 70),
        ((1, 100, 100), 100, 0),
        ((8, 16, 12, 12), 256, 16),
    ],
)
def test_groups_have_enough_elements(shape, rows, channels):
    assert (layout(shape).rows, layout(shape).channels) == (rows, channels)


def test_where_the_reference_is_not_finite_nothing_is_summed():
    y, r = noisy((8, 100))
    r[3, 5], r[4, 6], y[4, 6] = math.nan, math.inf, 7.0
    found = measure(y, r)

    assert found.error.isfinite().all() and found.size.isfinite().all()
    y[2, 2] = math.nan
    assert measure(y, r).error[2] == math.inf


@pytest.mark.parametrize("scale", [1e-44, 1e-38, 1e-20, 1e20, 1e38])
def test_no_scale_overflows(scale):
    y, r = noisy((100, 100))
    found = measure(y * scale, r * scale)

    assert found.size[:100].max().item() == pytest.approx(scale, rel=0.5)
    assert found.error.isfinite().all()
