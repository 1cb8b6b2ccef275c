# SPDX-License-Identifier: Apache-2.0
"""Products as tensor cores compute them in TF32, on any device.

A library may choose TF32 for one call and FP32 for the next, as cuDNN does for
convolutions; one run says nothing about what the other would have been. So the operands
of each product are rounded to TF32, and the rest is FP32.
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


class RoundedOperands(TorchDispatchMode):
    """While active, products are those of operands in TF32."""

    def __init__(self, is_of_convolutions=False):
        super().__init__()
        self._positions = _CONVOLUTIONS if is_of_convolutions else _PRODUCTS

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.split("::")[1]
        if func.namespace == "aten" and name in self._positions:
            positions = self._positions[name]
            args = [
                _rounded_all(value) if positions is None or index in positions else value
                for index, value in enumerate(args)
            ]
        return func(*args, **(kwargs or {}))


def _rounded_all(value):
    if isinstance(value, (list, tuple)):
        return type(value)(_rounded_all(each) for each in value)
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    return rounded(value) if is_float else value


def rounded(x):
    """`x` to the nearest number of TF32's mantissa; 16-bit types have no more bits."""
    if x.dtype == torch.float64:
        return rounded(x.float()).double()
    if x.dtype != torch.float32:
        return x
    half = 1 << (_DROPPED_BITS - 1)
    bits = x.contiguous().view(torch.int32)
    return bits.add(half).bitwise_and_(-(1 << _DROPPED_BITS)).view(torch.float32)
