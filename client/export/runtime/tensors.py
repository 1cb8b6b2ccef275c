# SPDX-License-Identifier: Apache-2.0
def _mtmc_direct(name, public):
    """PyTorch's function of that name, which answers what `public` answers without the detours
    that the host pays for before a first kernel. Names with an underscore may go any day."""
    return getattr(getattr(_mtmc_torch, "_C", None), name, public)


def _mtmc_check(tensors, shapes, types):
    """Kernels trust what they are given, so that only what they were made for may reach them."""
    if [t.shape for t in tensors] == shapes and [t.dtype for t in tensors] == types:
        return
    for index, tensor in enumerate(tensors):
        if tensor.shape != shapes[index] or tensor.dtype != types[index]:
            raise ValueError(
                f"input {index} of the program is {tensor.dtype} {tuple(tensor.shape)}; it was "
                f"made for {types[index]} {tuple(shapes[index])}")


def _mtmc_positional(forward, module, arguments, keywords, count):
    """The first `count` arguments by position, as `forward` itself would take them; all others
    must have their defaults, with which the program was made."""
    import inspect

    bound = inspect.signature(forward).bind(module, *arguments, **keywords)
    bound.apply_defaults()
    values = bound.args[1:]
    parameters = list(bound.signature.parameters.values())[1:]
    others = [p for p in parameters[count:] if bound.arguments[p.name] is not p.default]
    others = [p.name for p in others if bound.arguments[p.name] not in ((), {})]
    has_any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if others or len(values) < count or (has_any_number and len(values) > count):
        raise TypeError(f"the program was made for the first {count} arguments of forward"
                        + "".join(f" and the default of {name}" for name in others))
    return values[:count]


def _mtmc_buffer(module, name, beside):
    """A buffer, or a tensor in a plain attribute, which `Module.to` leaves where it was and
    which therefore goes where the tensor `beside` is, if there is one."""
    buffers = module._buffers
    if name in buffers:
        return buffers[name]
    tensor = getattr(module, name)
    if beside is not None and tensor.device != beside.device:
        tensor = tensor.to(beside.device)
        setattr(module, name, tensor)
    return tensor


def _mtmc_copy(targets, values):
    """Each value to its target, all of one element type, in few launches and as if at once: a
    value may be the memory of another one's target."""
    taken = {target.untyped_storage().data_ptr() for target in targets}
    values = [value.clone() if value.untyped_storage().data_ptr() in taken else value
              for value in values]
    _mtmc_torch._foreach_copy_(targets, values)


def _mtmc_strided(tensor, shape, strides, offset):
    """Elements of a dense tensor where they lie; `offset` counts from its own first one."""
    return tensor.as_strided(shape, strides, tensor.storage_offset() + offset)


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
