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


def _mtmc_leaves(arguments):
    """Tensors and numbers in tuples, lists and dictionaries, in the order in which they stand."""
    found = []
    for value in arguments:
        if isinstance(value, (tuple, list)):
            found += _mtmc_leaves(value)
        elif isinstance(value, dict):
            found += _mtmc_leaves(value.values())
        else:
            found.append(value)
    return found


def _mtmc_buffer(module, name, arguments):
    """A buffer, or a tensor in a plain attribute, which `Module.to` leaves where it was and
    which therefore goes where the arguments are."""
    buffers = module._buffers
    if name in buffers:
        return buffers[name]
    tensor = getattr(module, name)
    for argument in arguments:
        if isinstance(argument, _mtmc_torch.Tensor):
            if tensor.device != argument.device:
                setattr(module, name, tensor.to(argument.device))
            break
    return getattr(module, name)


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
