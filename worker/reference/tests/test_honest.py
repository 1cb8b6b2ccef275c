# SPDX-License-Identifier: Apache-2.0
"""The runs that widen a bound: what a library may choose, and what it may not."""

import fairness
import pytest
import torch

from mtmc_reference.compare import float_spreads
from mtmc_reference.honest import HonestRuns, honest
from mtmc_reference.precision import Arithmetic
from mtmc_reference.tensor_core import NarrowOperands, rounded, truncated
from mtmc_reference.workload import PUBLIC, Key


def convolution(x, w):
    return torch.nn.functional.conv2d(x, w)


def inputs():
    torch.manual_seed(1)
    return [torch.randn(4, 32, 20, 20), torch.randn(16, 32, 3, 3) * 0.1]


_CHANGED = Key(3, "DISTRIBUTION_NEGATED")


def satisfied(program, may_use_tf32, key=_CHANGED):
    expectation = fairness.expected(convolution, inputs(), key, may_use_tf32=may_use_tf32)
    return fairness.satisfied(None, inputs(), program, key, expectation)


def in_tf32(x, w):
    return convolution(rounded(x), rounded(w))


def in_bf16(x, w):
    return convolution(x.bfloat16().float(), w.bfloat16().float())


def test_a_convolution_may_be_in_tf32_where_the_library_may_choose_it():
    assert fairness.KERNELBENCH in satisfied(in_tf32, may_use_tf32=True)
    assert satisfied(in_tf32, may_use_tf32=False) == [fairness.TF32, fairness.HALF]
    assert satisfied(in_bf16, may_use_tf32=True) == [fairness.HALF]


def test_where_kernelbench_may_look_a_convolution_is_as_exact_as_eagers():
    """It compares with eager there, which is FP32 here."""
    for key in (PUBLIC, Key(2)):
        assert fairness.KERNELBENCH not in satisfied(in_tf32, may_use_tf32=True, key=key)
        assert fairness.STRICT in satisfied(convolution, may_use_tf32=True, key=key)


def test_narrow_operands_are_those_of_products_alone():
    torch.manual_seed(2)
    x, w = torch.randn(30, 40), torch.randn(40, 50)

    with NarrowOperands(rounded):
        products = [x @ w, torch.addmm(x[:, :30], w[:30, :30].t(), x[:, :30].t())]
        others = x * 1.1
    with NarrowOperands(rounded, is_of_convolutions=True):
        product = x @ w

    assert torch.equal(products[0], rounded(x) @ rounded(w))
    assert not torch.equal(products[0], x @ w)
    assert torch.equal(others, x * 1.1) and torch.equal(product, x @ w)


@pytest.mark.parametrize("brought, most", [(rounded, 2**-11), (truncated, 2**-10)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tf32_has_eleven_bits(brought, most, dtype):
    x = torch.randn(10_000, dtype=dtype)
    error = ((brought(x) - x) / x).abs()

    assert most / 2 < error.max() <= most
    assert torch.equal(brought(brought(x)), brought(x))
    assert torch.equal(brought(torch.tensor([torch.inf])), torch.tensor([torch.inf]))


def test_a_run_is_made_when_it_is_asked_for_and_once():
    expectation = fairness.expected(convolution, inputs())
    fairness.judged(None, inputs(), convolution, fairness.HALF, expectation=expectation)
    assert expectation._reference is None

    fairness.judged(None, inputs(), in_bf16, fairness.HALF, expectation=expectation)
    known = expectation._honest.knows
    assert known(Arithmetic.ROUNDED) and not known(Arithmetic.REORDERED)

    fairness.judged(None, inputs(), in_bf16, fairness.TF32, expectation=expectation)
    assert known(Arithmetic.REORDERED) and not known(Arithmetic.FP64)


@pytest.mark.parametrize("kind", [Arithmetic.REORDERED, Arithmetic.ROUNDED_CONVOLUTIONS])
def test_an_observed_run_can_be_made_again(kind):
    """As when memory ran out the first time."""

    class Watcher:
        entered = 0

        def __enter__(self):
            self.entered += 1

        def __exit__(self, *_):
            pass

    def run_twice(_, observer):
        for _ in range(2):
            with observer:
                pass
        return [torch.zeros(1)]

    watcher = Watcher()
    runs = HonestRuns(
        run_twice,
        torch.device("cpu"),
        may_use_tf32=True,
        dtypes=[torch.float32],
        oracle=Arithmetic.FP64,
        reference=None,
        spreads=None,
        strict=None,
    )

    assert runs.outputs(kind, watcher) and watcher.entered == 2


def test_what_overflows_in_another_order_says_nothing():
    x = torch.tensor([1.0, 2.0, 80.0, 88.722])
    reference = [x.exp()]

    def run(kind, observer):
        with observer:
            return [x.exp() * 1.0]

    dtypes, spreads = [torch.float32], float_spreads(reference)
    strict = honest(reference, reference, spreads)
    args = (False, dtypes, Arithmetic.STRICT, reference, spreads, strict)
    found = HonestRuns(run, torch.device("cpu"), *args).find(Arithmetic.REORDERED)

    assert 0 < found.tolerances[0] < 1e-4
