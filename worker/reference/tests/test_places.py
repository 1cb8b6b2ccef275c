# SPDX-License-Identifier: Apache-2.0
"""Where the data of a short model lies."""

import torch

from mtmc_reference.places import Places, _places_of

_CPU = torch.device("cpu")


def _addresses(places, inputs, count=40):
    return {places.of_inputs(inputs)[0].data_ptr() for _ in range(count)}


def test_small_inputs_have_many_places_with_the_same_content():
    inputs = [torch.randn(100), 3]
    places = Places(_CPU)

    assert 20 < len(_addresses(places, inputs)) <= 64
    for _ in range(10):
        x, scalar = places.of_inputs(inputs)
        assert torch.equal(x, inputs[0]) and scalar == 3


def test_the_larger_the_inputs_the_fewer_their_places():
    assert _places_of(0) == 64
    assert _places_of(32 << 20) == 16
    assert _places_of(1 << 30) == 6


def test_large_inputs_stay():
    inputs = [torch.zeros(1 << 20)]

    assert _addresses(Places(_CPU), inputs) == {inputs[0].data_ptr()}


def test_other_inputs_are_copied_anew():
    places = Places(_CPU)
    _addresses(places, [torch.zeros(100)])
    inputs = [torch.ones(100)]

    assert all(torch.equal(places.of_inputs(inputs)[0], inputs[0]) for _ in range(10))


def test_outputs_move_while_blocks_are_held():
    places = Places(_CPU)
    places.note_outputs({"y": torch.zeros(5000)})

    addresses = set()
    for _ in range(40):
        with places.moved_outputs():
            addresses.add(torch.empty(5000).data_ptr())

    assert len(addresses) > 1


def test_large_outputs_are_not_held():
    places = Places(_CPU)
    places.note_outputs([torch.zeros(1 << 20)])

    assert places._output_sizes == []
