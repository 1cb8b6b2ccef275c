# SPDX-License-Identifier: Apache-2.0
"""Where the data of a short model lies.

On an H200 the place of the data shows in the time of a kernel of 5 us by up to 0.2 us,
the same in every sample. So each block of samples has other places, as the candidate has
them: the more, the smaller they are.
"""

import contextlib
import secrets

import torch

from .returned import tensors_of
from .workload import total_bytes

# Data that is larger takes longer than its place matters.
_MOST_BYTES = {"cuda": 64 << 20, "cpu": 1 << 20}
_LEAST_PLACES = 6
_MOST_PLACES = 64
# Of all places together, where there are more than the least.
_BYTES_OF_PLACES = 512 << 20


class Places:
    """Inputs and outputs at changing addresses; a model's own tensors stay."""

    def __init__(self, device):
        self._device = device
        self._most = _MOST_BYTES[device.type]
        # Copies of the inputs that were asked for last, themselves included.
        self._copies = [None]
        # Sizes in bytes of the tensors that the model returns, and their places.
        self._output_sizes = []
        self._output_places = 1

    def of_inputs(self, inputs):
        """The inputs, or a copy of them."""
        num_bytes = total_bytes(inputs)
        if num_bytes > self._most:
            return inputs
        if self._copies[0] is not inputs:
            self._copies = [inputs]
        if len(self._copies) < _places_of(num_bytes):
            self._copies.append([_copy(value) for value in inputs])
            return self._copies[-1]
        return secrets.choice(self._copies)

    def note_outputs(self, outputs):
        """Takes down what `moved_outputs` has to move."""
        tensors = tensors_of(outputs)
        num_bytes = total_bytes(tensors)
        is_small = num_bytes <= self._most
        self._output_sizes = [y.nbytes for y in tensors] if is_small else []
        self._output_places = _places_of(num_bytes)

    @contextlib.contextmanager
    def moved_outputs(self):
        """Outputs that are allocated in the block lie elsewhere than in the one before."""
        # The allocator gives a block that was freed last: some of them are in use now.
        held = [
            torch.empty(size, dtype=torch.uint8, device=self._device)
            for _ in range(secrets.randbelow(self._output_places))
            for size in self._output_sizes
        ]
        try:
            yield
        finally:
            held.clear()


def _places_of(num_bytes):
    """How many places so many bytes have."""
    return min(max(_BYTES_OF_PLACES // max(num_bytes, 1), _LEAST_PLACES), _MOST_PLACES)


def _copy(value):
    return value.clone() if isinstance(value, torch.Tensor) else value
