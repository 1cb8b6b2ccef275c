# SPDX-License-Identifier: Apache-2.0
"""Convolutions in fp64 as matrix products.

cuDNN has no fast algorithm for them: on an H200 a transposed one over three axes ran at
0.9 TFLOP/s, where the device's matrix products in fp64 have tensor cores. So for each tap, those
along the last axis together, the elements of the input that it meets are gathered, multiplied
with its weights, and added up. Samples are taken a few at a time, so that what is gathered stays
small beside inputs and outputs.
"""

import contextlib
import functools
import itertools
import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .precision import Arithmetic

# Bytes that are gathered and added up at a time.
_GATHERED_BYTES = 1 << 30
# Multiply-adds below which cuDNN is as fast.
_LEAST_WORK = 1 << 30
# Least elements of a sum over channels and taps of the last axis, for which a matrix product is
# worth what it reads and writes.
_LEAST_DEPTH = 8


def wide_convolutions(kind, device):
    """Context in which convolutions of a run in the arithmetic `kind` are matrix products."""
    is_wide = kind == Arithmetic.FP64 and device.type == "cuda"
    return WideConvolutions() if is_wide else contextlib.nullcontext()


class WideConvolutions(TorchDispatchMode):
    """While active, convolutions of fp64 tensors that are worth it are matrix products."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.convolution.default and not kwargs:
            convolution = _Convolution(*args)
            if convolution.is_worthwhile():
                # Where memory is short, cuDNN may do with less.
                with contextlib.suppress(torch.cuda.OutOfMemoryError):
                    return convolution.run()
        return func(*args, **(kwargs or {}))


class _Convolution:
    """The arguments of aten::convolution: `x` [N, C, ...], `weight` [O, C / groups, ...], or
    [C, O / groups, ...] of a transposed one."""

    def __init__(self, x, weight, bias, stride, padding, dilation, is_transposed, extra, groups):
        self._x, self._weight, self._bias = x, weight, bias
        self._dims = weight.dim() - 2
        self._stride, self._padding, self._dilation, self._extra = (
            list(values) * (self._dims if len(values) == 1 else 1)
            for values in (stride, padding, dilation, extra)
        )
        self._is_transposed = is_transposed
        self._groups = groups

    def is_worthwhile(self):
        x, weight = self._x, self._weight
        if x.dtype != torch.float64 or weight.dtype != torch.float64 or x.dim() != weight.dim():
            return False
        met = x if self._is_transposed else self._whole
        work = met.shape[0] * math.prod(met.shape[2:]) * weight.numel()
        return self._depth() >= _LEAST_DEPTH and work >= _LEAST_WORK

    def _depth(self):
        """Elements that a matrix product adds up."""
        if self._is_transposed:
            return self._weight.shape[0] // self._groups
        return self._weight.shape[1] * self._weight.shape[-1]

    def run(self):
        x, whole = self._x, self._whole
        y = x.new_empty(whole.shape)
        for start, count in self._chunks(whole):
            one = self._spread if self._is_transposed else self._gathered
            one(x.narrow(0, start, count), y.narrow(0, start, count))
        if self._bias is not None:
            y += self._bias.view(-1, *[1] * self._dims)
        return y

    @functools.cached_property
    def _whole(self):
        """A tensor of the form of the result, without memory."""
        return torch.ops.aten.convolution(
            *(
                None if value is None else torch.empty_like(value, device="meta")
                for value in (self._x, self._weight, self._bias)
            ),
            self._stride,
            self._padding,
            self._dilation,
            self._is_transposed,
            self._extra,
            self._groups,
        )

    def _chunks(self, whole):
        """(first sample, samples) of each part."""
        samples, places = whole.shape[0], math.prod(whole.shape[2:])
        if self._is_transposed:
            met = self._weight.shape[1] * self._weight.shape[-1] * math.prod(self._x.shape[2:])
        else:
            met = self._depth() * places
        elements = met * self._groups + whole.shape[1] * places
        most = max(_GATHERED_BYTES // max(elements * whole.itemsize, 1), 1)
        return [(start, min(most, samples - start)) for start in range(0, samples, most)]

    def _gathered(self, x, y):
        """Writes to `y` [n, O, places...] what taps make of the elements that they meet."""
        ends = [end for padding in reversed(self._padding) for end in (padding, padding)]
        x = torch.nn.functional.pad(x, ends) if any(ends) else x.contiguous()
        samples, taps = len(x), self._weight.shape[2:]
        weight = self._weight.reshape(self._groups, -1, *self._weight.shape[1:])
        depth = self._depth()
        # [n, C, taps of the last axis, places...]: neighbouring taps are a dilation apart.
        shape = (samples, x.shape[1], taps[-1], *y.shape[2:])
        steps = [s * step for s, step in zip(x.stride()[2:], self._stride)]
        strides = (*x.stride()[:2], x.stride(-1) * self._dilation[-1], *steps)
        total = x.new_zeros(samples * self._groups, weight.shape[1], math.prod(y.shape[2:]))
        for tap in itertools.product(*map(range, taps[:-1])):
            offset = sum(k * d * s for k, d, s in zip(tap, self._dilation, x.stride()[2:]))
            met = x.as_strided(shape, strides, x.storage_offset() + offset)
            met = met.reshape(samples * self._groups, depth, -1)
            of_tap = weight[(slice(None), slice(None), slice(None), *tap)]
            total.baddbmm_(self._for_samples(of_tap.reshape(self._groups, -1, depth), samples), met)
        y.copy_(total.view(y.shape))

    def _spread(self, x, y):
        """Writes to `y` [n, O, extents...] what elements of `x` bring to the places that their
        taps meet."""
        samples, taps = len(x), self._weight.shape[2:]
        extents = [
            (size - 1) * step + d * (k - 1) + 1 + extra
            for size, step, d, k, extra in zip(
                x.shape[2:], self._stride, self._dilation, taps, self._extra
            )
        ]
        # [groups, C / groups, O / groups, taps...]
        weight = self._weight.reshape(self._groups, -1, *self._weight.shape[1:])
        flat = x.reshape(samples * self._groups, weight.shape[1], -1)
        whole = x.new_zeros(*y.shape[:2], *extents)
        for tap in itertools.product(*map(range, taps[:-1])):
            of_tap = weight[(slice(None), slice(None), slice(None), *tap)]
            of_tap = of_tap.permute(0, 3, 2, 1).reshape(self._groups, -1, weight.shape[1])
            brought = self._for_samples(of_tap, samples) @ flat
            # [n, groups, taps of the last axis, O / groups, ...]
            brought = brought.view(samples, self._groups, taps[-1], -1, *x.shape[2:])
            for last in range(taps[-1]):
                met = tuple(
                    slice(k * d, k * d + (size - 1) * step + 1, step)
                    for k, d, size, step in zip(
                        (*tap, last), self._dilation, x.shape[2:], self._stride
                    )
                )
                places = whole[(slice(None), slice(None), *met)]
                places += brought[:, :, last].reshape(places.shape)
        inner = tuple(slice(p, p + size) for p, size in zip(self._padding, y.shape[2:]))
        y.copy_(whole[(slice(None), slice(None), *inner)])

    def _for_samples(self, weight, samples):
        """[groups, a, b] for each sample: [n groups, a, b]."""
        return weight.expand(samples, *weight.shape).reshape(-1, *weight.shape[1:])
