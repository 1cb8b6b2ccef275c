# SPDX-License-Identifier: Apache-2.0
"""One tensor against another, in chunks, so that temporaries stay small."""

import dataclasses
import math

import torch

# Elements of one chunk. On a CPU its few fp64 temporaries should stay in the
# cache (256K * 8 bytes); on a GPU they are 512 MiB each and launches are few.
_CPU_CHUNK = 256 * 1024
_CUDA_CHUNK = 64 * 1024 * 1024


@dataclasses.dataclass(frozen=True)
class Error:
    """Distance of an output from its reference; infinite where NaN or Inf differ."""

    # Smallest t with |y - r| <= t + t * |r| for every element.
    tolerance: float
    max_absolute: float
    # Row-major index of the element that decides `tolerance`.
    worst_index: int


def error(actual, expected):
    """Error of `actual` against `expected`; shapes must agree, types may differ.

    NaN matches NaN and an infinity matches itself. Integers that differ at all
    have a tolerance above 0.
    """
    worst, largest, index = 0.0, 0.0, 0
    for start, y, r in _chunks(actual, expected):
        needed, absolute = _element_errors(y, r)
        value, position = needed.max(dim=0)
        if value.item() > worst:
            worst, index = value.item(), start + position.item()
        largest = max(largest, absolute.max().item())
    return Error(worst, largest, index)


def is_allclose(actual, expected, tolerance):
    """`torch.allclose(expected, actual, atol=tolerance, rtol=tolerance)` in chunks."""
    return all(
        torch.allclose(r, y.to(r.dtype), atol=tolerance, rtol=tolerance)
        for _, y, r in _chunks(actual, expected)
    )


def finite_mean(tensor):
    """Mean of the finite elements as a float; 0 where there are none."""
    total, count = 0.0, 0
    size = _chunk_size(tensor)
    for start in range(0, tensor.numel(), size):
        chunk = tensor.reshape(-1)[start : start + size].double()
        chunk = chunk[torch.isfinite(chunk)]
        total, count = total + chunk.sum().item(), count + chunk.numel()
    return total / count if count else 0.0


def _chunk_size(tensor):
    return _CUDA_CHUNK if tensor.is_cuda else _CPU_CHUNK


def _chunks(actual, expected):
    y, r = actual.reshape(-1), expected.reshape(-1)
    size = _chunk_size(expected)
    for start in range(0, r.numel(), size):
        chunk = slice(start, start + size)
        yield start, y[chunk].to(r.device), r[chunk]


def _element_errors(y, r):
    same = y == r
    if y.is_floating_point() and r.is_floating_point():
        same |= torch.isnan(y) & torch.isnan(r)
    y, r = y.double(), r.double()
    absolute = (y - r).abs()
    needed = absolute / (1.0 + r.abs())
    # Where one is NaN or infinite and the other is not, no tolerance is enough.
    absolute = torch.nan_to_num(absolute, nan=math.inf, posinf=math.inf)
    needed = torch.nan_to_num(needed, nan=math.inf, posinf=math.inf)
    needed = torch.where(torch.isinf(y) | torch.isinf(r), math.inf, needed)
    # Large integers that differ can be equal as fp64.
    needed = needed.clamp_(min=torch.finfo(torch.float64).tiny)
    zero = needed.new_zeros(())
    return torch.where(same, zero, needed), torch.where(same, zero, absolute)
