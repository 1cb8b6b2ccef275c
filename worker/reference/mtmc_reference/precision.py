# SPDX-License-Identifier: Apache-2.0
"""The arithmetic a run uses: fp64, strict FP32, PyTorch's default, TF32, half."""

import contextlib
import enum

import torch


class Arithmetic(enum.Enum):
    """How one forward pass computes."""

    FP64 = "fp64"
    # TF32 off everywhere.
    STRICT = "strict"
    # PyTorch's defaults: convolutions may use TF32, matrix products may not.
    DEFAULT = "default"
    TF32 = "tf32"
    BF16 = "bf16"
    FP16 = "fp16"
    # Strict FP32 on operands of products that are cut off to TF32, or rounded to it or to
    # bf16: what tensor cores do, on any device (`tensor_core`).
    TRUNCATED = "truncated"
    ROUNDED = "rounded"
    ROUNDED_BF16 = "rounded bf16"
    # Those of convolutions and recurrent layers alone are rounded to TF32.
    ROUNDED_CONVOLUTIONS = "rounded convolutions"
    # The oracle's arithmetic with the roundings of another order of its sums (`rounding`).
    REORDERED = "reordered"


# (matrix products, convolutions) may use TF32.
_TF32_FLAGS = {
    Arithmetic.FP64: (False, False),
    Arithmetic.STRICT: (False, False),
    Arithmetic.DEFAULT: (False, True),
    Arithmetic.TF32: (True, True),
    Arithmetic.BF16: (False, True),
    Arithmetic.FP16: (False, True),
}
_STRICT_FLAGS = (False, False)
_AUTOCAST = {Arithmetic.BF16: torch.bfloat16, Arithmetic.FP16: torch.float16}


@contextlib.contextmanager
def arithmetic(kind, device):
    """Sets the process-wide flags of `kind` for the block; not thread-safe."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    saved = matmul.allow_tf32, cudnn.allow_tf32, torch.get_default_dtype()
    try:
        matmul.allow_tf32, cudnn.allow_tf32 = _TF32_FLAGS.get(kind, _STRICT_FLAGS)
        if kind == Arithmetic.FP64:
            # Tensors that `forward` makes itself must be fp64 as well.
            torch.set_default_dtype(torch.float64)
        with contextlib.ExitStack() as stack:
            if kind in _AUTOCAST:
                stack.enter_context(torch.autocast(device.type, dtype=_AUTOCAST[kind]))
            yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = saved[:2]
        torch.set_default_dtype(saved[2])


def distinct(device):
    """Kinds below FP32 that differ from strict FP32 on `device`."""
    if device.type == "cuda":
        return (Arithmetic.DEFAULT, Arithmetic.TF32, Arithmetic.BF16, Arithmetic.FP16)
    return (Arithmetic.BF16,)
