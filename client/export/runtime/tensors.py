# SPDX-License-Identifier: Apache-2.0
def _mtmc_check(tensors, shapes, types):
    """Kernels trust what they are given, so that only what they were made for may reach them."""
    if [t.shape for t in tensors] == shapes and [t.dtype for t in tensors] == types:
        return
    for index, tensor in enumerate(tensors):
        if tensor.shape != shapes[index] or tensor.dtype != types[index]:
            raise ValueError(
                f"input {index} of the program is {tensor.dtype} {tuple(tensor.shape)}; it was "
                f"made for {types[index]} {tuple(shapes[index])}")


def _mtmc_scalar(value, data_type):
    """The bytes of a kernel's scalar argument."""
    return bytes(_mtmc_torch.tensor([value], dtype=data_type).view(_mtmc_torch.uint8).tolist())


class _MtmcConstant:
    """A tensor that the model holds without a name; copied once to each device."""

    def __init__(self, content, data_type, shape):
        self._tensor = _mtmc_torch.frombuffer(
            bytearray.fromhex(content), dtype=data_type).reshape(shape)
        self._copies = {}

    def on(self, device):
        if device not in self._copies:
            self._copies[device] = self._tensor.to(device)
        return self._copies[device]
