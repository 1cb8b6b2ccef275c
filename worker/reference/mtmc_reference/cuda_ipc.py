# SPDX-License-Identifier: Apache-2.0
"""CUDA memory across processes, through the runtime API of `cuda.bindings`.

Imported only where a CUDA device is used. Calls run in the primary context that
PyTorch has; a failing call raises RuntimeError.
"""

import ctypes

import torch
from cuda.bindings import runtime

# sizeof(cudaIpcMemHandle_t)
_HANDLE_BYTES = 64
# Smaller allocations share a block of this size, which a handle opens as a whole.
_BLOCK_BYTES = 2 * 1024 * 1024


# The Allocation that was given up last. Allocating and freeing gigabytes takes
# milliseconds, and the next one mostly has the same size.
_spare = None


class Allocation:
    """Device memory of its own, so that its handle opens nothing else.

    Its content is arbitrary: what another Allocation was used for, and no more.
    """

    def __init__(self, size, device):
        global _spare
        self._device = device
        self._size = -(-size // _BLOCK_BYTES) * _BLOCK_BYTES
        if _spare is not None and (_spare._size, _spare._device) == (self._size, device):
            self.pointer, _spare = _spare.pointer, None
            return
        free_spare()
        size = self._size
        _select(device)
        try:
            self.pointer = int(_check(runtime.cudaMalloc(size)))
        except RuntimeError:
            # Blocks that PyTorch keeps for later are not visible to cudaMalloc.
            torch.cuda.empty_cache()
            self.pointer = int(_check(runtime.cudaMalloc(size)))

    def handle(self):
        """The 64 bytes of the allocation's cudaIpcMemHandle_t."""
        _select(self._device)
        handle = _check(runtime.cudaIpcGetMemHandle(self.pointer))
        return ctypes.string_at(handle.getPtr(), _HANDLE_BYTES)

    def keep_for_next(self):
        """Gives the memory up, to the next Allocation if that has the same size."""
        global _spare
        free_spare()
        _spare = self

    def _free(self):
        _select(self._device)
        pointer, self.pointer = self.pointer, 0
        _check(runtime.cudaFree(pointer))


def spare_bytes():
    """Bytes that the last Allocation that was given up has left."""
    return _spare._size if _spare is not None else 0


def free_spare():
    """Frees what the last Allocation that was given up has left."""
    global _spare
    if _spare is not None:
        freed, _spare = _spare, None
        freed._free()


def open_handle(handle, device):
    """Maps another process's allocation; returns its first address."""
    if len(handle) != _HANDLE_BYTES:
        raise ValueError(f"an IPC handle has {_HANDLE_BYTES} bytes, not {len(handle)}")
    _select(device)
    structure = runtime.cudaIpcMemHandle_t()
    ctypes.memmove(structure.getPtr(), handle, _HANDLE_BYTES)
    return int(
        _check(runtime.cudaIpcOpenMemHandle(structure, runtime.cudaIpcMemLazyEnablePeerAccess))
    )


def close(pointer, device):
    """Unmaps what `open_handle` mapped, after all work on the device is done."""
    torch.cuda.synchronize(device)
    _select(device)
    _check(runtime.cudaIpcCloseMemHandle(pointer))


def as_tensor(pointer, size, device):
    """A byte tensor over device memory that it does not own."""
    if size == 0:
        return torch.empty(0, dtype=torch.uint8, device=device)
    return torch.as_tensor(_Bytes(pointer, size), device=device)


class _Bytes:
    """What PyTorch reads to wrap foreign device memory; bf16 has no typestr, bytes have."""

    def __init__(self, pointer, size):
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (pointer, False),
            "strides": None,
            "version": 2,
        }


def _select(device):
    # PyTorch creates the primary context; the runtime API then finds it current.
    torch.cuda.init()
    _check(runtime.cudaSetDevice(device.index or 0))


def _check(answer):
    code, *values = answer
    if code != runtime.cudaError_t.cudaSuccess:
        runtime.cudaGetLastError()
        _, text = runtime.cudaGetErrorString(code)
        raise RuntimeError(f"CUDA runtime call failed: {text.decode()} ({code.name})")
    return values[0] if values else None
