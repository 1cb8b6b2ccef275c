# SPDX-License-Identifier: Apache-2.0
"""State that a model keeps in plain attributes of its modules: counters, caches, tensors.

A forward pass starts from the attributes that the constructor left, each time: the second
run of a model that counts its calls is then the first one again.
"""

import contextlib
import operator

import torch

# Attributes that PyTorch itself gives a module; what they hold is kept by others.
_OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))
# Whose items are attributes, too.
_CONTAINERS = (list, dict, set)


@contextlib.contextmanager
def kept(model):
    """After the block the modules have the attributes that they had before.

    Lists, dictionaries and sets get their items back. The elements of tensors do not. Gives a
    function that tells the paths of attributes that are other ones by then.
    """
    saved = [_Attributes(path, module) for path, module in model.named_modules()]

    def changed():
        return {path for attributes in saved for path in attributes.changed()}

    try:
        yield changed
    finally:
        for attributes in saved:
            attributes.restore()


class _Attributes:
    """Those of one module as they were. A network has hundreds of modules, of which hardly one
    changes: that is found out without a look at each name."""

    def __init__(self, path, module):
        self._path = path
        self._module = module
        self._held = vars(module).copy()
        self._items = {
            name: value.copy()
            for name, value in self._held.items()
            if isinstance(value, _CONTAINERS) and name not in _OF_EVERY_MODULE
        }

    def changed(self):
        """Paths of those that came, or hold another object or other items."""
        if self._are_same():
            return []
        own = _own(self._held)
        return [
            f"{self._path}.{name}".lstrip(".")
            for name, value in _own(vars(self._module)).items()
            if name not in own
            or own[name] is not value
            or name in self._items
            and _ids(value) != _ids(self._items[name])
        ]

    def restore(self):
        if self._are_same():
            return
        now, own = vars(self._module), _own(self._held)
        for name in _own(now).keys() - own.keys():
            del now[name]
        for name, value in own.items():
            if name in self._items:
                _refill(value, self._items[name])
            now[name] = value

    def _are_same(self):
        now = vars(self._module)
        return (
            not self._items
            and now.keys() == self._held.keys()
            and all(map(operator.is_, now.values(), self._held.values()))
        )


@contextlib.contextmanager
def as_buffers(model):
    """In the block, tensors in plain attributes are buffers, which a trace may change.

    Gives their paths. A tensor that several attributes share stays what it is.
    """
    found = [
        (path, module, name, value)
        for path, module in model.named_modules()
        for name, value in _own(vars(module)).items()
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
    values = [value for module in model.modules() for value in vars(module).values()]
    return [value for value in values if isinstance(value, torch.Tensor)]


def _own(attributes):
    return {n: value for n, value in attributes.items() if n not in _OF_EVERY_MODULE}


def _ids(container):
    """What tells items apart: tensors have no truth to compare by."""
    items = list(container)
    if isinstance(container, dict):
        items += container.values()
    return list(map(id, items))


def _refill(container, items):
    # Also where nothing has changed.
    container.clear()
    container.extend(items) if isinstance(container, list) else container.update(items)
