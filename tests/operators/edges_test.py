# SPDX-License-Identifier: Apache-2.0
"""Kernels of the built-in coder against PyTorch where its own samples do not go: see edges.py."""

import edges
import judge
import pytest
import torch


@pytest.fixture(scope="module")
def judging():
    torch.set_num_threads(1)
    return judge.Judge()


@pytest.mark.parametrize("name", edges.EDGES)
def test_kernels_compute_what_pytorch_does(judging, tmp_path, name):
    edge = edges.EDGES[name]

    differences = judging.differences(tmp_path, edge)

    assert not differences, edge.source()
