# SPDX-License-Identifier: Apache-2.0
"""What an exported file makes of arguments and state before the program sees them."""

import exported
import pytest
import torch


@pytest.fixture(scope="module")
def file():
    return exported.module("tensors")


class Models:
    def plain(self, x, y, scale=2.0, *, mode="a"):
        pass

    def any_number(self, x, *others):
        pass


@pytest.mark.parametrize(
    "name, count, arguments, keywords, expected",
    [
        ("plain", 2, (1, 2), {}, (1, 2)),
        ("plain", 2, (), {"y": 2, "x": 1}, (1, 2)),
        ("plain", 3, (1,), {"y": 2}, (1, 2, 2.0)),
        ("plain", 3, (1, 2), {"scale": 5.0}, (1, 2, 5.0)),
        ("plain", 2, (1, 2, 2.0), {"mode": "a"}, (1, 2)),
        ("any_number", 3, (1, 2, 3), {}, (1, 2, 3)),
        ("any_number", 1, (1,), {}, (1,)),
    ],
)
def test_arguments_are_taken_as_the_model_takes_them(
    file, name, count, arguments, keywords, expected
):
    forward = getattr(Models, name)

    assert file._mtmc_positional(forward, None, arguments, keywords, count) == expected


@pytest.mark.parametrize(
    "name, count, arguments, keywords, part",
    [
        ("plain", 2, (1,), {}, "missing"),
        ("plain", 2, (1, 2, 3.0), {}, "default of scale"),
        ("plain", 2, (1, 2), {"mode": "b"}, "default of mode"),
        ("plain", 2, (1, 2), {"other": 1}, "unexpected keyword"),
        ("any_number", 2, (1, 2, 3), {}, "first 2 arguments"),
        ("any_number", 3, (1, 2), {}, "first 3 arguments"),
    ],
)
def test_arguments_that_the_program_was_not_made_for_are_refused(
    file, name, count, arguments, keywords, part
):
    with pytest.raises(TypeError, match=part):
        file._mtmc_positional(getattr(Models, name), None, arguments, keywords, count)


def test_a_buffer_is_the_one_that_the_module_has_now(file):
    module = torch.nn.BatchNorm1d(3)
    module.running_mean = torch.full((3,), 2.0)

    assert file._mtmc_buffer(module, "running_mean", None) is module.running_mean


def test_a_plain_attribute_goes_where_the_arguments_are(file):
    module = torch.nn.Module()
    module.seen = torch.ones(3)
    there = torch.zeros(3, device="meta")

    assert file._mtmc_buffer(module, "seen", torch.zeros(3)) is module.seen
    assert file._mtmc_buffer(module, "seen", None) is module.seen
    moved = file._mtmc_buffer(module, "seen", there)
    assert moved.device.type == "meta" and moved is module.seen


def test_values_go_to_their_targets(file):
    targets = [torch.zeros(2, 3), torch.zeros(3, 2).t(), torch.zeros(())]
    values = [torch.rand(2, 3), torch.rand(2, 3), torch.rand(())]

    file._mtmc_copy(targets, values)
    for target, value in zip(targets, values, strict=True):
        assert torch.equal(target, value)


def test_a_value_may_be_the_memory_of_another_target(file):
    first, second = torch.zeros(2, 3), torch.ones(2, 3)

    file._mtmc_copy([first, second], [second.view(2, 3), first.view(2, 3)])
    assert first.eq(1).all() and second.eq(0).all()


def test_other_shapes_and_types_are_refused(file):
    x = torch.zeros(2, 3)

    file._mtmc_check([x], [x.shape], [x.dtype])
    with pytest.raises(ValueError, match="input 0"):
        file._mtmc_check([x], [torch.Size([3, 2])], [x.dtype])
    with pytest.raises(ValueError, match="float32"):
        file._mtmc_check([x.half()], [x.shape], [x.dtype])


def test_strides_count_from_where_a_tensor_begins(file):
    x = torch.arange(20.0)[5:17].view(3, 4)

    assert torch.equal(file._mtmc_strided(x, (4, 2), (1, 4), 4), x[1:].t())
