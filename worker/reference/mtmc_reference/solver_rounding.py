# SPDX-License-Identifier: Apache-2.0
"""What rounding does to solvers and factorizations, as a rule of `rounding`.

Those are backward stable at best (Higham, Accuracy and Stability of Numerical Algorithms): what
they give is exact for a matrix next to the one that was given, as far away as a few roundings of
its largest elements. How far that carries the result is its condition, which no rounding of the
result itself shows: next to a singular matrix nobody knows a single digit.
"""

import math

import torch

from .sum_rounding import ELEMENT_ROUNDINGS, SEED, first_of


def backward(func, args, kwargs, out, unit):
    """How far the first result goes with the matrix that is the first argument."""
    first, matrix = first_of(out), args[0]
    generator = torch.Generator(matrix.device).manual_seed(SEED)
    noise = torch.randn(
        matrix.shape, generator=generator, device=matrix.device, dtype=matrix.dtype
    )
    size = matrix.abs().amax((-2, -1), keepdim=True) * math.sqrt(matrix.shape[-1])
    near = first_of(func(matrix + noise.mul_(unit).mul_(size), *args[1:], **kwargs))
    change = torch.nan_to_num((near - first).abs(), nan=math.inf)
    # Elements of one solution are off by about as much, whatever became of each here.
    if first.dim() > matrix.dim() - 2:
        axis = -2 if first.dim() == matrix.dim() else -1
        change = change.amax(axis, keepdim=True)
    return change / unit + first.abs() * ELEMENT_ROUNDINGS
