# SPDX-License-Identifier: Apache-2.0
"""How many kernels a forward pass is taken to launch."""

import torch

from mtmc_reference.launch_counter import LaunchCounter


def _count(function):
    with LaunchCounter() as counter, torch.no_grad():
        function()
    return counter.count


def test_operators_that_compute_count_and_views_do_not():
    x = torch.randn(8, 8)

    assert _count(lambda: x + 1) == 1
    assert _count(lambda: x.t().reshape(64).unsqueeze(0)) == 1  # the copy of `reshape`
    assert _count(lambda: x.view(64)[3:9]) == 0
    assert _count(lambda: torch.empty_like(x)) == 0
    assert _count(lambda: torch.relu(torch.nn.functional.linear(x, x, x[0]))) == 2


def test_modules_count_like_functions():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8))

    assert _count(lambda: model(torch.ones(2, 8))) == 4  # with `ones`
