# SPDX-License-Identifier: Apache-2.0
"""Convolutions in fp64 as matrix products are what PyTorch computes."""

import random

import pytest
import torch
from conftest import SEED

from mtmc_reference import wide_convolution
from mtmc_reference.precision import Arithmetic
from mtmc_reference.rounding import Disturbed, unit_of
from mtmc_reference.wide_convolution import WideConvolutions, wide_convolutions


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Of any size, a few samples at a time."""
    monkeypatch.setattr(wide_convolution, "_LEAST_WORK", 0)
    monkeypatch.setattr(wide_convolution, "_LEAST_DEPTH", 0)
    monkeypatch.setattr(wide_convolution, "_GATHERED_BYTES", 1 << 13)


def drawn(choice):
    """(function of PyTorch, arguments) of a convolution."""
    dims, groups = choice.randint(1, 3), choice.randint(1, 3)
    is_transposed = choice.random() < 0.5
    taps = [choice.randint(1, 4) for _ in range(dims)]
    stride = [choice.randint(1, 3) for _ in range(dims)]
    dilation = [choice.randint(1, 3) for _ in range(dims)]
    padding = [choice.randint(0, 1 if is_transposed else 2) for _ in range(dims)]
    extents = [d * (k - 1) + 1 + choice.randint(2, 5) for d, k in zip(dilation, taps)]
    inner, outer = groups * choice.randint(1, 3), groups * choice.randint(1, 3)
    x = torch.randn(choice.randint(1, 4), inner, *extents, dtype=torch.float64)
    bias = torch.randn(outer, dtype=torch.float64) if choice.random() < 0.5 else None
    if not is_transposed:
        weight = torch.randn(outer, inner // groups, *taps, dtype=torch.float64)
        function = getattr(torch.nn.functional, f"conv{dims}d")
        return function, (x, weight, bias, stride, padding, dilation, groups)
    weight = torch.randn(inner, outer // groups, *taps, dtype=torch.float64)
    extra = [choice.randint(0, max(s, d) - 1) for s, d in zip(stride, dilation)]
    function = getattr(torch.nn.functional, f"conv_transpose{dims}d")
    return function, (x, weight, bias, stride, padding, extra, groups, dilation)


@pytest.mark.parametrize("number", range(60))
def test_any_convolution_is_what_pytorch_computes(number, monkeypatch):
    torch.manual_seed(number)
    function, arguments = drawn(random.Random(f"{SEED} {number}"))
    runs = []
    run = wide_convolution._Convolution.run
    monkeypatch.setattr(
        wide_convolution._Convolution, "run", lambda self: runs.append(1) or run(self)
    )

    expected = function(*arguments)
    with torch.no_grad(), WideConvolutions():
        found = function(*arguments)

    assert runs and found.shape == expected.shape and found.is_contiguous()
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_a_sample_without_a_batch_and_other_types_are_pytorchs():
    x, weight = torch.randn(3, 9, 9).double(), torch.randn(4, 3, 2, 2).double()
    with torch.no_grad(), WideConvolutions():
        assert torch.nn.functional.conv2d(x, weight).shape == (4, 8, 8)
        found = torch.nn.functional.conv2d(x.float(), weight.float())
    assert found.dtype == torch.float32


def test_an_input_of_any_strides_is_read_right():
    x = torch.randn(2, 8, 9, 3).double().permute(0, 3, 1, 2)
    weight = torch.randn(5, 3, 2, 3).double()
    with torch.no_grad(), WideConvolutions():
        found = torch.nn.functional.conv2d(x, weight)
    torch.testing.assert_close(found, torch.nn.functional.conv2d(x, weight))


def test_what_does_not_fit_into_memory_is_left_to_the_library(monkeypatch):
    def fail(self):
        raise torch.cuda.OutOfMemoryError("memory")

    monkeypatch.setattr(wide_convolution._Convolution, "run", fail)
    x, weight = torch.randn(2, 3, 9).double(), torch.randn(4, 3, 2).double()
    with torch.no_grad(), WideConvolutions():
        assert torch.nn.functional.conv1d(x, weight).shape == (2, 4, 8)


def test_a_disturbed_run_disturbs_them_once():
    x, weight = torch.randn(2, 3, 64).double(), torch.randn(4, 3, 5).double()
    exact = torch.nn.functional.conv1d(x, weight)
    with torch.no_grad(), WideConvolutions(), Disturbed(unit_of(torch.float32)):
        disturbed = torch.nn.functional.conv1d(x, weight)
    with torch.no_grad(), Disturbed(unit_of(torch.float32)):
        alone = torch.nn.functional.conv1d(x, weight)

    assert (disturbed != exact).all()
    torch.testing.assert_close(disturbed, alone, rtol=1e-12, atol=1e-12)


def test_fp64_on_a_gpu_has_them():
    gpu = torch.device("cuda")
    assert isinstance(wide_convolutions(Arithmetic.FP64, gpu), WideConvolutions)
    for kind, device in ((Arithmetic.STRICT, gpu), (Arithmetic.FP64, torch.device("cpu"))):
        assert not isinstance(wide_convolutions(kind, device), WideConvolutions)
