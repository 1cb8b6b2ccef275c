# SPDX-License-Identifier: Apache-2.0
"""Outputs that are judged against strict FP32, since eager itself is far further away."""

import gc
import weakref

import fairness
import pytest
import torch

from mtmc_reference import honest
from mtmc_reference.coarse import Prospect
from mtmc_reference.judge import Judge
from mtmc_reference.precision import Arithmetic
from mtmc_reference.tensor_core import rounded
from mtmc_reference.workload import Key, PUBLIC

SEEDED = Key(1)


@pytest.fixture(autouse=True)
def _narrow_by_default(monkeypatch):
    """As on a GPU, eager's own arithmetic is another one than strict FP32."""
    monkeypatch.setattr(honest, "distinct", lambda device: (Arithmetic.DEFAULT, Arithmetic.BF16))


def convolution(x, w):
    return torch.nn.functional.conv2d(x, w)


def in_tf32(x, w):
    return convolution(rounded(x), rounded(w)) if x.dtype == torch.float32 else convolution(x, w)


def in_bf16(x, w):
    return convolution(x.bfloat16().float(), w.bfloat16().float())


def with_a_shifted_channel(x, w):
    y = in_tf32(x, w)
    y[:, 3] += 2e-2 * y.std()
    return y


class _Execution(fairness._Execution):
    """A GPU's: by default convolutions are TF32. Takes down what was run."""

    def __init__(self, default):
        super().__init__(convolution)
        self.default = default
        self.kinds = []

    def run(self, inputs, kind, observer=None, state=None):
        self.kinds.append(kind)
        if kind == Arithmetic.DEFAULT:
            return [self.default(*inputs)]
        return super().run(inputs, kind, observer, state)


def judged(program, precision, key=SEEDED, default=in_tf32):
    """(Compared, kinds of runs that it took)."""
    torch.manual_seed(5)
    inputs = [torch.randn(4, 32, 20, 20), torch.randn(16, 32, 3, 3) * 0.1]
    execution = _Execution(default)
    judge = Judge(execution, fairness._Workloads(inputs), torch.device("cpu"), False, False)
    judge._finite_outputs = [True]
    expectation = judge.expectation(key, inputs)
    answer = fairness.judged(None, inputs, program, precision, key, expectation)
    return answer, execution.kinds


@pytest.mark.parametrize("precision", [fairness.KERNELBENCH, fairness.TF32, fairness.HALF])
def test_what_eager_does_needs_no_fp64(precision):
    answer, kinds = judged(in_tf32, precision)

    assert answer["isCorrect"] and Arithmetic.FP64 not in kinds
    assert answer["satisfied"] == [fairness.KERNELBENCH, fairness.TF32, fairness.HALF]


@pytest.mark.parametrize("program", [in_bf16, with_a_shifted_channel])
def test_a_refusal_is_made_against_fp64(program):
    answer, kinds = judged(program, fairness.KERNELBENCH)

    assert not answer["isCorrect"] and Arithmetic.FP64 in kinds


def test_a_strict_job_is_judged_against_fp64():
    answer, kinds = judged(in_tf32, fairness.STRICT)

    assert not answer["isCorrect"] and Arithmetic.FP64 in kinds


def test_eager_that_is_not_further_away_tells_nothing():
    """On inputs that KernelBench could draw, it would refuse what eager does not round."""
    answer, kinds = judged(in_tf32, fairness.KERNELBENCH, default=convolution)

    assert not answer["isCorrect"] and Arithmetic.FP64 in kinds


def test_what_fp32_reaches_is_strict():
    answer, kinds = judged(convolution, fairness.KERNELBENCH)

    assert answer["satisfied"][0] == fairness.STRICT and Arithmetic.FP64 not in kinds


def test_public_inputs_are_judged_against_fp64():
    answer, kinds = judged(in_tf32, fairness.KERNELBENCH, key=PUBLIC)

    assert answer["isCorrect"] and Arithmetic.FP64 in kinds


def _erratic(seed, ratio=0.05):
    """A convolution of which rounding decides so much: some elements have the other sign."""

    def program(x, w):
        y = in_tf32(x, w)
        generator = torch.Generator().manual_seed(seed)
        return torch.where(torch.rand(y.shape, generator=generator) < ratio, -y, y)

    return program


@pytest.mark.parametrize("key", [PUBLIC, SEEDED, Key(1000, salt=7)])
def test_what_is_as_far_away_as_eager_is_accepted(key):
    def answer(program):
        return judged(program, fairness.KERNELBENCH, key, default=_erratic(1))[0]["isCorrect"]

    assert answer(_erratic(1)) and answer(_erratic(2)) and answer(convolution)
    assert not answer(_erratic(2, ratio=0.4))
    assert not answer(lambda x, w: torch.zeros_like(convolution(x, w)))


def test_inputs_that_nobody_has_seen_are_judged_as_others_are():
    key = Key(1000, salt=7)

    assert judged(in_tf32, fairness.KERNELBENCH, key)[0]["isCorrect"]
    assert not judged(in_bf16, fairness.KERNELBENCH, key)[0]["isCorrect"]


def test_where_fp32_does_not_stand_for_the_truth_it_is_asked_seldom():
    prospect = Prospect()
    asked = 0
    for _ in range(18):
        if prospect.is_due():
            asked += 1
            prospect.count(False)

    assert asked == 2 + 4
    while not prospect.is_due():
        pass
    prospect.count(True)
    assert prospect.is_due()


@pytest.mark.parametrize("program", [in_tf32, in_bf16])
def test_an_expectation_goes_at_once(program):
    """Gigabytes would lie on the device until somebody looks for circles."""
    gc.collect()
    gc.disable()
    try:
        inputs = [torch.randn(4, 32, 20, 20), torch.randn(16, 32, 3, 3) * 0.1]
        judge = Judge(
            _Execution(in_tf32), fairness._Workloads(inputs), torch.device("cpu"), False, False
        )
        judge._finite_outputs = [True]
        expectation = judge.expectation(SEEDED, inputs)
        fairness.judged(None, inputs, program, fairness.KERNELBENCH, SEEDED, expectation)
        assert expectation.whole_numbers is not None
        known = weakref.ref(expectation)
        del expectation
        assert known() is None
    finally:
        gc.enable()
