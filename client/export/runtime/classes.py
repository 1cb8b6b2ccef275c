# SPDX-License-Identifier: Apache-2.0
def _mtmc_class(module, path):
    """A class of another module than this one."""
    import importlib

    found = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _mtmc_dataclass(kind, fields):
    """An object of a dataclass with these fields, which are as its constructor left them when
    the model made it: only one that is a mapping, too, needs to be called to be whole."""
    if issubclass(kind, dict):
        return kind(**fields)
    made = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made
