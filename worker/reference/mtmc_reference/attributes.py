# SPDX-License-Identifier: Apache-2.0
"""State that a model keeps in plain attributes of its modules: counters, caches, tensors.

A forward pass starts from the attributes that the constructor left, each time: the second
run of a model that counts its calls is then the first one again.
"""

import contextlib

import torch

# Attributes that PyTorch itself gives a module; what they hold is kept by others.
_OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))


@contextlib.contextmanager
def kept(model):
    """After the block the modules have the attributes that they had before.

    Lists, dictionaries and sets get their items back. The elements of tensors do not. Gives a
    function that tells the paths of attributes that are other ones by then.
    """
    before = [(module, _own(module)) for module in model.modules()]
    copies = [{name: _copied(value) for name, value in own.items()} for _, own in before]
    paths = {module: path for path, module in model.named_modules()}

    def changed():
        return {
            f"{paths[module]}.{name}".lstrip(".")
            for (module, own), copied in zip(before, copies)
            for name in _changed(own, copied, _own(module))
        }

    try:
        yield changed
    finally:
        for (module, own), copied in zip(before, copies):
            for name in _own(module).keys() - own.keys():
                del vars(module)[name]
            for name, value in own.items():
                if isinstance(value, (list, dict, set)):
                    _refill(value, copied[name])
                vars(module)[name] = value


@contextlib.contextmanager
def as_buffers(model):
    """In the block, tensors in plain attributes are buffers, which a trace may change.

    Gives their paths. A tensor that several attributes share stays what it is.
    """
    found = [
        (path, module, name, value)
        for path, module in model.named_modules()
        for name, value in _own(module).items()
        if isinstance(value, torch.Tensor)
    ]
    holders = [id(value) for *_, value in found]
    found = [entry for entry in found if holders.count(id(entry[-1])) == 1]
    for _, module, name, value in found:
        del vars(module)[name]
        module.register_buffer(name, value, persistent=False)
    try:
        yield {f"{path}.{name}".lstrip(".") for path, _, name, _ in found}
    finally:
        for _, module, name, value in found:
            module._buffers.pop(name, None)
            module._non_persistent_buffers_set.discard(name)
            vars(module)[name] = value


def tensors(model):
    """Those in plain attributes."""
    values = [value for module in model.modules() for value in _own(module).values()]
    return [value for value in values if isinstance(value, torch.Tensor)]


def _own(module):
    return {name: value for name, value in vars(module).items() if name not in _OF_EVERY_MODULE}


def _changed(before, copied, now):
    """Names of attributes that came, or hold another object or other items."""
    for name, value in now.items():
        if name not in before or before[name] is not value:
            yield name
        elif isinstance(value, (list, dict, set)):
            # Tensors have no truth to compare by.
            own, other = list(value), list(copied[name])
            if isinstance(value, dict):
                own, other = own + list(value.values()), other + list(copied[name].values())
            if list(map(id, own)) != list(map(id, other)):
                yield name


def _copied(value):
    return value.copy() if isinstance(value, (list, dict, set)) else None


def _refill(container, items):
    # Also where nothing has changed: tensors have no truth to compare by.
    container.clear()
    container.extend(items) if isinstance(container, list) else container.update(items)
