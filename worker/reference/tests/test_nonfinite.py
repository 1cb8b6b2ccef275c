# SPDX-License-Identifier: Apache-2.0
"""What a program makes of NaN and infinities is told, and judged on request."""

import math

import fairness
import pytest
import torch

_KEY = fairness.Key(9, "DISTRIBUTION_NONFINITE")


def inputs():
    torch.manual_seed(1)
    x = torch.randn(64, 64)
    x[3, 5], x[4, 6], x[7, 7] = math.nan, math.inf, -math.inf
    return [x]


def compared(program, judges):
    return fairness.judged(
        torch.relu, inputs(), program, fairness.KERNELBENCH, _KEY, judges_nonfinite=judges
    )


def without_nan(x):
    # What `max(x, 0)` of C does.
    return torch.where(x > 0, x, 0.0)


def test_what_differs_is_told_in_one_sentence():
    answer = compared(without_nan, judges=False)

    assert answer["isCorrect"] and len(answer["satisfied"]) == 4
    assert answer["remark"] == (
        "output y: 1 of 4096 elements are other special values, mostly a finite number where "
        "the reference has NaN"
    )


def test_nothing_is_told_of_what_agrees():
    assert compared(torch.relu, judges=False)["remark"] == ""


@pytest.mark.parametrize(
    "program, is_correct",
    [
        (torch.relu, True),
        (without_nan, False),
        (lambda x: torch.relu(x).nan_to_num(nan=math.nan, posinf=1e38), False),
        (lambda x: torch.relu(x) * torch.where(x.isinf(), -1, 1), False),
        (lambda x: torch.relu(x) * 1.01, False),
        (lambda x: torch.relu(x) * (1 + 1e-6), True),
    ],
    ids=["same", "no NaN", "no infinity", "other infinity", "finite ones differ", "rounding"],
)
def test_on_request_it_is_judged(program, is_correct):
    answer = compared(program, judges=True)

    assert answer["isCorrect"] == is_correct, answer["message"]
    assert "remark" not in answer
