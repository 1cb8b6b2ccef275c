# SPDX-License-Identifier: Apache-2.0
"""Memory for one execution of a program outside the worker.

Every tensor lies between margins, and what a program has to write holds what the caller
wants, so that a program that reads what it should not shows it.
"""

import pathlib
import re
import sys

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "kernel/engine/testing"))

import program_runner  # noqa: E402  (the path is set above)

# On both sides of each tensor.
MARGIN = 16384


def launch(rest):
    """(kernel, grid, block, arguments) of a launch directive, extents as expressions."""
    rest = re.sub(r"\b(grid|block)=([^\s(]\S*)", r"\1=(\2)", rest)
    return program_runner.parse_launch(rest)


def tensors(plan, inputs, filling):
    """(name, bytes without the margins, the same as a tensor) for each tensor of `plan`.

    `filling` draws the bytes of what a program has to write and of all margins: from
    their number to an array.
    """
    for name, tensor in plan.tensors.items():
        size = torch.empty(0, dtype=tensor.dtype).element_size()
        count = int(numpy.prod(tensor.shape)) * size
        window = filling(count + 2 * MARGIN)[MARGIN : MARGIN + count]
        if name in inputs and count:
            given = inputs[name].to(tensor.dtype).contiguous()
            window[:] = given.reshape(-1).view(torch.uint8).numpy()
        shaped = torch.from_numpy(window) if count else torch.empty(0, dtype=torch.uint8)
        yield name, window, shaped.view(tensor.dtype).reshape(tensor.shape)
