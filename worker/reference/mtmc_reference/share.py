# SPDX-License-Identifier: Apache-2.0
"""Tensors that two processes of one worker share: mtmc.pipe.v1.SharedTensor.

On a CPU a tensor lies in a file of the scratch folder, on CUDA in memory of its
own that the other process opens by an IPC handle. Either way the other process
gets copies: nothing that is shared holds a parameter in use, a reference output
or the allocator's other blocks.
"""

import base64
import contextlib
import itertools
import math
import mmap
import os

import torch

from . import tensor_type

# Start of each tensor within a file or allocation; SharedFile asks for 64, and
# 256 is what a CUDA allocation itself has.
_ALIGNMENT = 256
_numbers = itertools.count()


class FilePublication:
    """Dense copies of tensors in one file. A resource: `release` deletes the file."""

    def __init__(self, scratch, tensors, is_numbered=True):
        self._path = os.path.join(scratch, f"reference-{os.getpid()}-{next(_numbers)}.bin")
        offsets, size = _layout(tensors)
        self.byte_count = size
        self.is_released = False
        # When its content was last found to be as it was shared, by its owner's clock.
        self.checked_time = -math.inf
        with open(self._path, "xb") as file:
            file.truncate(size)
            for (_, tensor), offset in zip(tensors, offsets):
                file.seek(offset)
                file.write(_bytes_of(tensor.detach().cpu().contiguous()).numpy().data)
        self.messages = [
            _message(name, tensor, is_numbered, file={"path": self._path, "offset": offset})
            for (name, tensor), offset in zip(tensors, offsets)
        ]

    def tensors(self):
        """The copies, by name; nobody may change them. Valid until `release`."""
        return _by_name(self.messages, lambda message, size: _mapped(message["file"], size))

    def release(self):
        self.is_released = True
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)


class CudaPublication:
    """Dense copies of tensors in one allocation. A resource: `release` frees it.

    The memory does not come from PyTorch's allocator, whose segments hold other
    tensors too and would be opened as a whole.
    """

    def __init__(self, device, tensors, is_numbered=True):
        from . import cuda_ipc

        offsets, size = _layout(tensors)
        self.byte_count = size
        self.is_released = False
        # When its content was last found to be as it was shared, by its owner's clock.
        self.checked_time = -math.inf
        self._memory = cuda_ipc.Allocation(size, device)
        whole = cuda_ipc.as_tensor(self._memory.pointer, size, device)
        for (_, tensor), offset, end in zip(tensors, offsets, [*offsets[1:], size]):
            content = _bytes_of(tensor.detach().contiguous())
            whole[offset : offset + content.numel()].copy_(content)
            # What lies between tensors counts in the sum.
            whole[offset + content.numel() : end].zero_()
        self._words = whole.view(torch.int64)
        # Waits for the copies, too.
        self._sum = self._words.sum().item()
        handle = base64.b64encode(self._memory.handle()).decode()
        self.messages = [
            _message(name, tensor, is_numbered, cudaIpc={"handle": handle, "offset": offset})
            for (name, tensor), offset in zip(tensors, offsets)
        ]

    def tensors(self):
        """The copies, by name; nobody may change them. Valid until `release`."""
        whole = self._words.view(torch.uint8)

        def content_of(message, size):
            return whole.narrow(0, message["cudaIpc"]["offset"], size)

        return _by_name(self.messages, content_of)

    def enqueue_sum(self):
        """The sum of the content, which the other process could change, on the device."""
        return self._words.sum()

    def has_sum(self, value):
        """Whether that is the sum of the content as it was shared."""
        return value == self._sum

    def release(self):
        self.is_released = True
        self._words = None
        self._memory.keep_for_next()


def publish(tensors, scratch, device, is_numbered=True):
    """Shares copies of (name, tensor) pairs the way `device` wants it. Contents that have
    numbers may be remembered by those who read them."""
    if device.type == "cuda":
        return CudaPublication(device, tensors, is_numbered)
    return FilePublication(scratch, tensors, is_numbered)


def damaged(publications):
    """Those whose content the other process has changed, as far as a sum tells. Waits once
    for all; files can only be read there."""
    writable = [each for each in publications if isinstance(each, CudaPublication)]
    if not writable:
        return []
    sums = torch.stack([each.enqueue_sum() for each in writable]).tolist()
    return [each for each, found in zip(writable, sums) if not each.has_sum(found)]


def spare_bytes(device):
    """Bytes that released publications have left for the next ones."""
    if device.type != "cuda":
        return 0
    from . import cuda_ipc

    return cuda_ipc.spare_bytes()


def return_spare_memory(device):
    """Frees what released publications have left for the next ones."""
    if device.type == "cuda":
        from . import cuda_ipc

        cuda_ipc.free_spare()


@contextlib.contextmanager
def opened(messages, device):
    """Yields the shared tensors by name; they are invalid after the block.

    Raises ValueError when a message does not describe a readable tensor.
    """
    with contextlib.ExitStack() as stack:
        bases = {}

        def content_of(message, size):
            if "file" in message:
                return _mapped(message["file"], size)
            if "cudaIpc" in message:
                return _device_bytes(message["cudaIpc"], size, device, bases, stack)
            raise ValueError(f"tensor {message.get('name')!r} has no location")

        tensors = _by_name(messages, content_of)
        try:
            yield tensors
        finally:
            # Views of the memory must be gone before it is unmapped.
            tensors.clear()


def _by_name(messages, content_of):
    """Tensors over the bytes that `content_of(message, size)` finds for each message."""
    tensors = {}
    for message in messages:
        size, shape, dtype = _described(message)
        tensors[message.get("name", "")] = content_of(message, size).view(dtype).reshape(shape)
    return tensors


def _described(message):
    kind = message.get("type", {})
    try:
        shape = [int(extent) for extent in kind.get("shape", [])]
        dtype = tensor_type.torch_dtype(kind["dataType"])
    except (KeyError, ValueError) as error:
        raise ValueError(f"tensor {message.get('name')!r} has no type ({error})") from error
    return math.prod(shape) * dtype.itemsize, shape, dtype


def _mapped(location, size):
    offset = int(location.get("offset", 0))
    if size == 0:
        return torch.empty(0, dtype=torch.uint8)
    with open(location["path"], "rb") as file:
        have = os.fstat(file.fileno()).st_size
        if offset < 0 or have < offset + size:
            raise ValueError(f"{location['path']} holds {have} bytes, not {offset + size}")
        # A private mapping: writable for torch, and never written back.
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    return torch.frombuffer(mapping, dtype=torch.uint8, count=size, offset=offset)


def _device_bytes(location, size, device, bases, stack):
    from . import cuda_ipc

    handle = base64.b64decode(location["handle"])
    if handle not in bases:
        bases[handle] = cuda_ipc.open_handle(handle, device)
        stack.callback(cuda_ipc.close, bases[handle], device)
    return cuda_ipc.as_tensor(bases[handle] + int(location.get("offset", 0)), size, device)


def _layout(tensors):
    offsets, end = [], 0
    for _, tensor in tensors:
        offsets.append(end)
        end += -(-tensor_type.byte_count(tensor) // _ALIGNMENT) * _ALIGNMENT
    return offsets, max(end, _ALIGNMENT)


def _bytes_of(tensor):
    return tensor.reshape(-1).view(torch.uint8)


def _message(name, tensor, is_numbered, **location):
    form = tensor_type.describe(tensor, keep_strides=False)
    number = {"content": str(_draw_number())} if is_numbered else {}
    return {"name": name, "type": form, **location, **number}


def _draw_number():
    """A number that no other content has, of this process or of one before it."""
    return int.from_bytes(os.urandom(8), "little") | 1
