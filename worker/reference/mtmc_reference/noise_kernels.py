# SPDX-License-Identifier: Apache-2.0
"""What `rounding` does to results on a GPU, with one read and one write of each element.

The kernels are in `noise_kernels.cu`. Their random numbers are others than those of PyTorch's
generator, from the same distribution.
"""

import functools
import math
import pathlib

import torch

from . import scan_kernels, sum_rounding
from .scan_kernels import bits_of

_SOURCE = pathlib.Path(__file__).with_suffix(".cu")
# MTMC_THREADS of the source.
_THREADS = 256
# Others are few, and what they are off by is rounded to their own type.
TYPES = {torch.float64: "double", torch.float32: "float"}


def disturb(result, scale, unit, seed, number):
    """Adds noise of `scale` to `result`, in units: a tensor, or one of the scales of
    `sum_rounding`. False where kernels do not take them. Another `number` is other noise.
    """
    if not _are_taken([result, *_tensors(scale)]):
        return False
    name, operands, numbers = _kernel_of(scale, unit)
    return _launched(name, result, operands, [*numbers, *_noise(seed, number)])


def disturb_statistics(statistics, unit, seed, number):
    """Adds noise to the running statistics of `norm_rounding.Statistics`; as `disturb`."""
    tensors = [
        statistics.running_mean,
        statistics.running_variance,
        statistics.mean,
        statistics.inverse_deviation,
        statistics.wander,
    ]
    if not _are_taken(tensors):
        return False
    numbers = [
        statistics.terms,
        *_numbers_of(statistics.terms),
        bits_of(sum_rounding.ELEMENT_ROUNDINGS),
        bits_of(statistics.part),
        bits_of(statistics.epsilon),
        bits_of(unit),
        *_noise(seed, number),
    ]
    return _launched("DisturbStatistics", tensors[0], tensors[1:], numbers)


def _launched(name, result, operands, numbers):
    """Whether the kernel compiles; it runs then."""
    name = f"{name}<{TYPES[result.dtype]}>"
    arguments = [result, *operands, result.numel(), *numbers]

    def launched():
        blocks = scan_kernels.blocks(-(-result.numel() // _THREADS), result.device)
        launch(name, blocks, result.device, arguments)
        return True

    return scan_kernels.attempted(launched) is not None


def _noise(seed, number):
    return [seed, number, bits_of(sum_rounding.LEAST_DEVIATIONS)]


def _tensors(scale):
    if isinstance(scale, torch.Tensor):
        return [scale]
    if isinstance(scale, sum_rounding.Roundings):
        return []
    return [scale.squares, *([scale.wander] if isinstance(scale.wander, torch.Tensor) else [])]


def _are_taken(tensors):
    """Whether a kernel takes them, all of one type and shape."""
    first = tensors[0]
    are_alike = all(t.dtype == first.dtype and t.shape == first.shape for t in tensors)
    return are_alike and first.dtype in TYPES and scan_kernels.are_in_reach(tensors)


def _kernel_of(scale, unit):
    """(name, operands behind the result, numbers behind the count)"""
    if isinstance(scale, torch.Tensor):
        return "DisturbScaled", [scale], [bits_of(unit)]
    if isinstance(scale, sum_rounding.Roundings):
        return "DisturbElements", [], [bits_of(unit * scale.count)]
    wander = scale.wander if isinstance(scale.wander, torch.Tensor) else 0
    numbers = [*_numbers_of(scale.terms), bits_of(scale.roundings), bits_of(unit)]
    return "DisturbSums", [scale.squares, wander], numbers


def _numbers_of(terms):
    """Those of `SumScale` in the source."""
    usual = sum_rounding.usual_terms(terms)
    root = math.sqrt(usual)
    factors = [
        sum_rounding.SUM_FACTOR * root,
        sum_rounding.ALIKE_FACTOR * root,
        sum_rounding.FP32_LAST_PLACE * usual,
    ]
    return [terms, *map(bits_of, factors)]


def launch(name, blocks, device, arguments):
    """Enqueues the kernel of that name in C++."""
    scan_kernels.compiled(source(), name, device).launch(blocks, _THREADS, arguments)


@functools.cache
def source():
    """The text of the kernels."""
    return _SOURCE.read_text(encoding="utf-8")
