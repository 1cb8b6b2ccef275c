# SPDX-License-Identifier: Apache-2.0
"""Values of ordinary floats that no draw of `get_inputs` shows."""

import math

import pytest
import torch
from mtmc_reference import distribution, special_values


def changed(name, tensor, level=0, seed=1, bounds=()):
    changer = distribution.Changer([[tensor]], bounds=bounds)
    return changer.apply(name, [tensor.clone()], {0: level}, seed)[0]


@pytest.mark.parametrize("shape", [(256, 64), (4, 8, 16, 16), (2, 4096)])
def test_some_rows_are_special_and_most_are_as_drawn(shape):
    x = torch.randn(shape)

    y = changed("DISTRIBUTION_SPECIAL_ROWS", x)

    rows, drawn = y.reshape(-1, shape[-1]), x.reshape(-1, shape[-1])
    # Two columns may be changed as a whole.
    same = (rows != drawn).sum(1) <= 2
    assert not same.all() and same.sum() >= len(rows) // 4
    assert y.isfinite().all()
    if len(rows) > 100:
        is_equal = (rows == rows[:, :1]).all(1)
        assert (rows == 0).all(1).any() and (is_equal & (rows != 0).all(1)).any()
        assert ((rows.abs() < 1e-38).all(1) & (rows != 0).any(1)).any()
        ties = (rows == rows.amax(1, keepdim=True)).sum(1)
        assert ((ties > 1) & (ties < shape[-1])).any()
        assert (rows.abs().amax(1) > 1.5 * drawn.abs().max()).any()


def test_a_vector_has_special_stretches():
    x = torch.rand(1024)

    y = changed("DISTRIBUTION_SPECIAL_ROWS", x)

    assert (y == 0).sum() > 8 and (y == x).sum() >= 256


def test_rows_are_far_away_on_both_sides_and_tiny_in_all_sizes():
    x = torch.randn(256, 64)

    y = changed("DISTRIBUTION_SPECIAL_ROWS", x)

    assert y[0, 0] == 0
    assert (y.amin(1) > 20 * x.abs().max()).any() and (y.amax(1) < -20 * x.abs().max()).any()
    size = y.abs().amax(1)
    assert all(((low < size) & (size < 100 * low)).any() for low in (1e-8, 1e-6, 1e-4))
    milder = changed("DISTRIBUTION_SPECIAL_ROWS", x, level=1)
    assert milder.abs().max() < 25 * x.abs().max()


def test_some_rows_are_below_guards_and_some_are_zero_but_for_a_stretch():
    x = torch.randn(256, 64)

    y = changed("DISTRIBUTION_SPECIAL_ROWS", x)

    size = y.norm(dim=1)
    assert all(((low < size) & (size < 1e3 * low)).any() for low in (1e-12, 1e-16, 1e-20))
    assert ((y != 0).sum(1) == 1).sum() > 2
    is_late = (y[:, :8] == 0).all(1) & (y != 0).any(1)
    assert is_late.sum() > 4


def test_a_few_rows_show_every_kind_in_time():
    x = torch.randn(17, 34)

    drawn = [changed("DISTRIBUTION_SPECIAL_ROWS", x, seed=seed) for seed in range(8)]

    size = torch.stack([y.abs().amax(1) for y in drawn])
    assert ((1e-9 < size) & (size < 1e-2)).any() and (size > 20 * x.abs().max()).any()
    # But for two columns that are changed as a whole.
    assert all(((y != x).sum(1) <= 2).any() for y in drawn)


def test_rounded_inputs_are_equal_now_and_then():
    x, y = (changed("DISTRIBUTION_ROUNDED", torch.randn(64, 64) * size) for size in (1.0, 1.1))

    assert (x == y).any()


def test_rounded_inputs_begin_with_zero_where_they_have_one():
    for seed in range(8):
        assert changed("DISTRIBUTION_ROUNDED", torch.randn(64, 64), seed=seed)[0, 0] == 0
        assert changed("DISTRIBUTION_ROUNDED", torch.rand(64, 64) + 2, seed=seed)[0, 0] != 0


def test_the_milder_rows_stay_in_the_range():
    x = torch.rand(256, 64) + 0.5

    y = changed("DISTRIBUTION_SPECIAL_ROWS", x, level=3)

    assert not torch.equal(x, y) and x.min() <= y.min() and y.max() <= x.max()


def test_centered_inputs_have_both_signs():
    y = changed("DISTRIBUTION_CENTERED", torch.rand(256, 64))

    assert abs(y.mean()) < 1e-3 and 0.4 < (y < 0).float().mean() < 0.6


def test_far_elements_have_both_signs_where_there_are_both():
    for seed in range(8):
        y = changed("DISTRIBUTION_HEAVY_TAILED", torch.randn(64, 64), seed=seed)
        assert y.min() < -1e9 and y.max() > 1e9
        assert changed("DISTRIBUTION_HEAVY_TAILED", torch.rand(64, 64), seed=seed).min() >= 0


def test_rounded_inputs_have_few_values():
    for level in (0, 1):
        assert 4 <= len(changed("DISTRIBUTION_ROUNDED", torch.rand(64, 64), level).unique()) <= 10


def test_half_of_the_elements_are_at_the_ends():
    y = changed("DISTRIBUTION_RANGE_ENDS", torch.rand(256, 64))

    assert y.min() == 0 and y.max() == 1
    assert 0.4 < ((y < 0.01) | (y > 0.99)).float().mean() < 0.6
    assert (y == 0).any() and ((0 < y) & (y < 1e-4)).any() and ((0.999 < y) & (y < 1)).any()


def test_near_the_ends_nothing_leaves_the_range():
    x = torch.rand(256, 64)
    y = changed("DISTRIBUTION_RANGE_ENDS", x, level=2)

    assert 0 < y.min() < 1e-3 and 0.999 < y.max() < 1


def test_bounds_of_operators_are_met_from_both_sides():
    y = changed("DISTRIBUTION_RANGE_ENDS", torch.randn(256, 64), bounds=(6.0, -6.0))

    for bound in (6.0, -6.0):
        near = y[(y - bound).abs() < 0.1]
        assert (near < bound).any() and (near > bound).any() and (near == bound).any()


def test_the_largest_of_a_row_is_near_a_bound_whatever_the_others_are():
    y = changed("DISTRIBUTION_RANGE_ENDS", torch.randn(256, 64), bounds=(6.0, 65.0, 0.0))

    largest = y.amax(1)
    assert all(((largest - bound).abs() < 0.1 * bound).any() for bound in (6.0, 65.0))


def test_nan_and_infinities_are_few():
    y = changed("DISTRIBUTION_NONFINITE", torch.randn(256, 64))

    assert y.isnan().any() and (y == math.inf).any() and (y == -math.inf).any()
    assert (~y.isfinite()).sum() <= 12


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", distribution.DISTRIBUTIONS[8:12])
def test_other_types_stay(name, dtype):
    x = torch.randn(64, 64).to(dtype)

    y = changed(name, x)

    assert y.dtype == dtype and y.isfinite().all() and not torch.equal(x, y)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (3,), (2, 1, 5)])
@pytest.mark.parametrize("name", distribution.DISTRIBUTIONS)
def test_small_tensors_are_no_exception(name, shape):
    x = torch.randn(shape)
    changer = distribution.Changer([[x], [torch.randn(shape)]])

    for ways in changer.ways(name).values():
        for level in range(ways):
            assert changer.apply(name, [x.clone()], {0: level}, 1)[0].shape == x.shape


_PAIR = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x, z):
        return (x - z).square().mean(1)

def get_inputs():
    return [torch.randn(48, 64), torch.randn(48, 64)]

def get_init_inputs():
    return []
"""


def test_inputs_are_nearly_equal(client, write_problem):
    client.load(write_problem(source=_PAIR))

    def of_sums(t):
        x, z = t["x"], t["z"]
        return ((x * x).mean(1) + (z * z).mean(1) - 2 * (x * z).mean(1)).clamp(min=0)

    def refused(candidate):
        answers = client.check_all(candidate)
        return {name for name, answer in answers.items() if not answer["isCorrect"]}

    assert "DISTRIBUTION_RAMPS" in refused(of_sums)
    assert "public" not in refused(of_sums)
    assert not refused(lambda t: (t["x"].double() - t["z"].double()).square().mean(1).float())


def test_rows_of_inputs_are_nearly_equal_or_opposite():
    kinds = set()
    for seed in range(20):
        x, z = torch.randn(64, 32), torch.randn(64, 32)
        special_values.bring_beside(z, x, torch.Generator().manual_seed(seed))
        near = ((z - x).norm(dim=1) < 0.01 * x.norm(dim=1)).sum()
        opposite = ((z + x).norm(dim=1) < 0.01 * x.norm(dim=1)).sum()
        assert 8 < near + opposite < 56
        assert not near or not opposite
        kinds.add(bool(near))
    assert kinds == {False, True}
