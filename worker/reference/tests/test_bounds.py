# SPDX-License-Identifier: Apache-2.0
"""Error bounds, comparison and the probes of gameability."""

import math

import pytest
import torch

from mtmc_reference.compare import are_allclose, error, float_spreads
from mtmc_reference.oracle import Bounds
from mtmc_reference.precision import Arithmetic


def bounds(inspection):
    return {entry["precision"]: entry["tolerances"] for entry in inspection["bounds"]}


def inspect(process, path, **problem):
    response = process.load(path, **problem)
    assert "loaded" in response, response
    return response["loaded"]["inspection"]


def test_error_is_the_smallest_tolerance_that_passes():
    r = torch.tensor([0.0, 1.0, -3.0])
    y = torch.tensor([0.0, 1.2, -3.0])

    found = error(y, r)

    assert found.tolerance == pytest.approx(0.1, rel=1e-6)
    assert (found.worst_index, found.max_absolute) == (1, pytest.approx(0.2, rel=1e-6))
    assert not are_allclose([(y, r)], 0.05)


@pytest.mark.parametrize(
    "y, r, expected",
    [
        (math.nan, math.nan, 0.0),
        (math.inf, math.inf, 0.0),
        (math.inf, -math.inf, math.inf),
        (1.0, math.inf, math.inf),
        (math.nan, 1.0, math.inf),
    ],
)
def test_special_values_match_only_themselves(y, r, expected):
    assert error(torch.tensor([y]), torch.tensor([r])).tolerance == expected


def test_integers_that_differ_are_never_equal():
    r = torch.tensor([2**60])

    assert error(r, r).tolerance == 0
    assert error(r + 1, r).tolerance > 0


def test_classes_are_nested(process, write_problem):
    path = write_problem("return F.gelu(self.fc(x))", init="self.fc = nn.Linear(16, 16)")

    inspection = inspect(process, path, precision="PRECISION_HALF")
    found = [tolerances[0] for tolerances in bounds(inspection).values()]

    assert len(found) == 4 and found == sorted(found)
    assert found[0] < 1e-5 and found[1] == pytest.approx(1e-4)


@pytest.mark.parametrize(
    "dtype, is_changed, expected",
    [
        (torch.float32, False, 1e-4),
        (torch.float32, True, 4e-4),
        (torch.bfloat16, True, 1e-2),
    ],
)
def test_inputs_that_nobody_chose_have_a_wider_bound(dtype, is_changed, expected):
    r = torch.tensor([1.0, 50.0])
    found = Bounds(float_spreads([r]), [dtype], [0.0], lambda _: [0.0], is_changed)

    allowed = found.allowed("PRECISION_KERNELBENCH", 0)
    assert allowed == pytest.approx(max(expected, found.rounding(0)))


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_convolution_that_eager_does_not_round_bounds_only_inputs_nobody_chose(is_changed):
    """KernelBench compares with what eager chose, which may be FP32."""
    r = torch.tensor([1.0, 50.0])
    own = {Arithmetic.ROUNDED_CONVOLUTIONS: [1e-3]}
    found = Bounds(
        float_spreads([r]), [torch.float32], [0.0], lambda kind: own.get(kind, [0.0]), is_changed
    )

    assert (found.allowed("PRECISION_KERNELBENCH", 0) >= 2e-3) == is_changed
    assert found.allowed("PRECISION_TF32", 0) >= 1e-3


def test_small_outputs_have_small_bounds(process, write_problem):
    path = write_problem("return x * 1e-6")
    found = inspect(process, path, precision="PRECISION_HALF")

    assert bounds(found)["PRECISION_HALF"][0] < 2e-6
    assert found["passingProbes"] == []


def test_wider_classes_than_the_problems_are_not_asked(process, write_problem):
    inspection = inspect(process, write_problem("return x + 1"), precision="PRECISION_KERNELBENCH")

    assert list(bounds(inspection)) == ["PRECISION_STRICT", "PRECISION_KERNELBENCH"]


def test_integer_outputs_must_be_equal(process, write_problem):
    found = inspect(process, write_problem("return x.argmax(dim=1)"))

    assert set(map(tuple, bounds(found).values())) == {(0.0,)}


@pytest.mark.parametrize(
    "forward, probes",
    [
        ("return torch.relu(x)", []),
        ("return x * 1", ["input"]),
        ("return torch.ones(4, 4) * 3 + 0 * x[:4, :4]", ["mean", "replay"]),
        ("return x - x", ["zeros", "mean", "replay"]),
    ],
)
def test_probes_that_pass_are_named(process, write_problem, forward, probes):
    assert inspect(process, write_problem(forward))["passingProbes"] == probes


def test_random_models_are_compared_with_the_same_mask(process, write_problem):
    found = inspect(process, write_problem("return F.dropout(x, 0.5, True)"))

    assert found["versions"]["oracle"] == "strict"


def test_tensors_made_in_forward_follow_the_oracle(process, write_problem):
    path = write_problem("return (x @ torch.ones(16, 4)) @ self.w", init="self.w = torch.eye(4)")

    assert inspect(process, path)["versions"]["oracle"] == "fp64"


def test_no_run_is_made_for_classes_above_one_that_holds():
    asked = []

    def own(kind):
        asked.append(kind)
        return [3e-3]

    spreads = float_spreads([torch.randn(1000)])
    limits = Bounds(spreads, [torch.float32], [1e-7], own, knows=lambda kind: kind in asked)

    found = limits.satisfied([5e-3], precision="PRECISION_KERNELBENCH")
    assert found == ["PRECISION_KERNELBENCH", "PRECISION_TF32", "PRECISION_HALF"]
    assert asked == [Arithmetic.DEFAULT]
