# SPDX-License-Identifier: Apache-2.0
"""No honest program of a random problem is refused, and no dishonest one accepted."""

import random

import fairness
import pytest
import torch
from fairness_problems import PROBLEMS
from fairness_programs import in_order

from mtmc_reference.tensor_core import rounded


def problem_of(make, seed):
    torch.manual_seed(seed)
    return make(random.Random(f"{seed} {make.__name__}"))


@pytest.fixture(autouse=True)
def one_thread():
    """Small tensors gain nothing from more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("make", PROBLEMS, ids=lambda make: make.__name__)
def test_honest_programs_pass_and_dishonest_ones_do_not(make, seed):
    problem, expectations = problem_of(make, seed), {}

    for name, program, precision in problem.honest:
        found = fairness.verdicts(problem, program, precision, seed, expectations)
        refused = {where: a["message"] for where, a in found.items() if not a["isCorrect"]}
        assert not refused, f"{problem.name}: {name}"
    for name, program in problem.dishonest:
        found = fairness.verdicts(problem, program, fairness.KERNELBENCH, seed, expectations)
        assert not fairness.is_accepted(found), f"{problem.name}: {name}"


def _product(x, w):
    return x @ w


@pytest.mark.parametrize("scale", [1.0, 4096**-0.5, 1e-4])
def test_signs_that_mix_decide_what_precision_a_product_has(scale):
    torch.manual_seed(1)
    inputs = [torch.randn(64, 4096), torch.randn(4096, 64) * scale]

    def by(brought):
        return lambda x, w: brought(x) @ brought(w)

    def satisfied(program, key):
        return fairness.satisfied(_product, inputs, program, key)

    for key in (fairness.PUBLIC, fairness.Key(3, "DISTRIBUTION_CENTERED")):
        tf32 = satisfied(by(rounded), key)
        assert tf32 == [fairness.TF32, fairness.HALF]
        assert satisfied(by(lambda x: x.bfloat16().float()), key) == [fairness.HALF]


def test_doubles_that_are_computed_in_fp32_are_none():
    torch.manual_seed(2)
    x = torch.randn(64, 300, dtype=torch.float64)

    def function(x):
        return torch.softmax(x, -1)

    def satisfied(program):
        return fairness.satisfied(function, [x], program)

    def in_doubles(x):
        e = torch.exp(x - x.amax(-1, keepdim=True))
        return e / in_order(e).unsqueeze(-1)

    assert len(satisfied(in_doubles)) == 4
    assert satisfied(lambda x: function(x.float()).double()) == [fairness.TF32, fairness.HALF]


def test_a_report_names_the_part_that_decides():
    torch.manual_seed(3)
    x = torch.randn(80, 100)
    x[7] *= 1e-3

    def without_row(x):
        y = x * 2
        y[7] = 0
        return y

    answer = fairness.judged(lambda x: x * 2, [x], without_row, fairness.KERNELBENCH)

    report = answer["errors"][0]
    assert (report["part"], report["ratioNeeded"]) == ("row 7", 1.0)
    assert report["ratioAllowed"] < 1e-2 and "row 7" in answer["message"]
