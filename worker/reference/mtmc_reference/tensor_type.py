# SPDX-License-Identifier: Apache-2.0
"""Element types and shapes between PyTorch and mtmc.v1.TensorType."""


import torch

_DTYPE_NAMES = {
    torch.float64: "DATA_TYPE_F64",
    torch.float32: "DATA_TYPE_F32",
    torch.float16: "DATA_TYPE_F16",
    torch.bfloat16: "DATA_TYPE_BF16",
    torch.int64: "DATA_TYPE_I64",
    torch.int32: "DATA_TYPE_I32",
    torch.int16: "DATA_TYPE_I16",
    torch.int8: "DATA_TYPE_I8",
    torch.uint8: "DATA_TYPE_U8",
    torch.bool: "DATA_TYPE_BOOL",
}
_DTYPES = {name: dtype for dtype, name in _DTYPE_NAMES.items()}


def is_supported(dtype):
    """Whether mtmc has a name for `dtype`."""
    return dtype in _DTYPE_NAMES


def is_fixed(tensor):
    """Whether no extent of a traced tensor depends on the values of others."""
    return all(isinstance(e, int) or e.node.is_constant() for e in tensor.shape)


def data_type(dtype):
    """`torch.float32` to `DATA_TYPE_F32`. REQUIRES: is_supported(dtype)."""
    return _DTYPE_NAMES[dtype]


def torch_dtype(name):
    """`DATA_TYPE_F32` to `torch.float32`; KeyError for an unknown name."""
    return _DTYPES[name]


def dense_strides(shape):
    """Row-major strides of `shape`, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return strides[::-1]


def is_dense(shape, strides):
    """Whether the strides of every dimension longer than 1 are row-major."""
    return 0 in shape or all(
        extent == 1 or have == want
        for extent, have, want in zip(shape, strides, dense_strides(shape))
    )


def describe(tensor, keep_strides=True):
    """TensorType of a real or fake tensor; strides only where not row-major."""
    shape = [int(extent) for extent in tensor.shape]
    answer = {"dataType": data_type(tensor.dtype), "shape": shape}
    if keep_strides:
        strides = [int(stride) for stride in tensor.stride()]
        if not is_dense(shape, strides):
            answer["strides"] = strides
    return answer


def byte_count(tensor):
    """Bytes of the tensor's elements, stored densely."""
    return int(tensor.numel()) * tensor.element_size()
