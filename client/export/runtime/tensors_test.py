# SPDX-License-Identifier: Apache-2.0
"""What an exported file makes of arguments and state before the program sees them."""

import exported
import pytest
import torch


@pytest.fixture(scope="module")
def file():
    return exported.module("tensors")


def test_nested_arguments_become_leaves_in_their_order(file):
    a, b, c, d = (torch.zeros(n) for n in range(1, 5))

    found = file._mtmc_leaves(((a, [b, 3]), {"x": c, "more": (d,)}))

    assert len(found) == 5 and found[2] == 3
    assert [found[i] is t for i, t in ((0, a), (1, b), (3, c), (4, d))] == [True] * 4


def test_a_buffer_is_the_one_that_the_module_has_now(file):
    module = torch.nn.BatchNorm1d(3)
    module.running_mean = torch.full((3,), 2.0)

    assert file._mtmc_buffer(module, "running_mean", ()) is module.running_mean


def test_a_plain_attribute_goes_where_the_arguments_are(file):
    module = torch.nn.Module()
    module.seen = torch.ones(3)
    there = torch.zeros(3, device="meta")

    assert file._mtmc_buffer(module, "seen", [5, torch.zeros(3)]) is module.seen
    moved = file._mtmc_buffer(module, "seen", [5, there])
    assert moved.device.type == "meta" and moved is module.seen


def test_other_shapes_and_types_are_refused(file):
    x = torch.zeros(2, 3)

    file._mtmc_check([x], [x.shape], [x.dtype])
    with pytest.raises(ValueError, match="input 0"):
        file._mtmc_check([x], [torch.Size([3, 2])], [x.dtype])
    with pytest.raises(ValueError, match="float32"):
        file._mtmc_check([x.half()], [x.shape], [x.dtype])
