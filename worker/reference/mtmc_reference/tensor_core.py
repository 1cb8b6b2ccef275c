# SPDX-License-Identifier: Apache-2.0
"""Products as tensor cores compute them, on any device.

A library may choose TF32 for one call and FP32 for the next, as cuDNN does for
convolutions; one run says nothing about what the other would have been. So the operands
of each product are brought to TF32 or bf16, and the rest is FP32. A library rounds them; the
instruction itself cuts off what TF32 lacks, which a program may leave to it.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Bits of FP32's mantissa that TF32 lacks.
_DROPPED_BITS = 13

# Positions of the operands by operator; of a recurrent layer everything is one.
_CONVOLUTIONS = {
    "convolution": (0, 1),
    "cudnn_convolution": (0, 1),
    "_cudnn_rnn": None,
    "mkldnn_rnn_layer": None,
}
_PRODUCTS = {
    "mm": (0, 1),
    "bmm": (0, 1),
    "mv": (0, 1),
    "dot": (0, 1),
    "addmm": (1, 2),
    "addmv": (1, 2),
    "addbmm": (1, 2),
    "baddbmm": (1, 2),
    "_scaled_dot_product_flash_attention": (0, 1, 2),
    "_scaled_dot_product_flash_attention_for_cpu": (0, 1, 2),
    "_scaled_dot_product_efficient_attention": (0, 1, 2),
    "_scaled_dot_product_attention_math": (0, 1, 2),
    "_scaled_dot_product_cudnn_attention": (0, 1, 2),
    **_CONVOLUTIONS,
}


class NarrowOperands(TorchDispatchMode):
    """While active, the operands of products are what `brought` makes of them: of all, or of
    those of convolutions and recurrent layers."""

    def __init__(self, brought, is_of_convolutions=False):
        super().__init__()
        self._brought = brought
        self._positions = _CONVOLUTIONS if is_of_convolutions else _PRODUCTS

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.split("::")[1]
        if func.namespace == "aten" and name in self._positions:
            positions = self._positions[name]
            args = [
                self._all(value) if positions is None or index in positions else value
                for index, value in enumerate(args)
            ]
        return func(*args, **(kwargs or {}))

    def _all(self, value):
        if isinstance(value, (list, tuple)):
            return type(value)(self._all(each) for each in value)
        is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
        return self._brought(value) if is_float else value


def rounded(x):
    """`x` to the nearest number of TF32's mantissa; 16-bit types have no more bits."""
    return _masked(x, 1 << (_DROPPED_BITS - 1))


def truncated(x):
    """`x` without the bits that TF32 lacks."""
    return _masked(x, 0)


def as_bf16(x):
    """`x` to the nearest number of bf16."""
    return x.bfloat16().to(x.dtype)


def _masked(x, more):
    if x.dtype == torch.float64:
        return _masked(x.float(), more).double()
    if x.dtype != torch.float32:
        return x
    bits = x.contiguous().view(torch.int32)
    return bits.add(more).bitwise_and_(-(1 << _DROPPED_BITS)).view(torch.float32)
