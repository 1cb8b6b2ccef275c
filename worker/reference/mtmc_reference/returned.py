# SPDX-License-Identifier: Apache-2.0
"""What `forward` returns, taken apart: its tensors, and how they are nested.

The rest of the package knows outputs as a flat list. Containers and plain values are the
same for all inputs: nothing computes them, and a program has no part in them. They are
written down as mtmc.v1.Structure, by which an exported file returns just what the model does.
"""

import collections
import contextlib
import dataclasses
import functools
import sys

import torch

from .failure import ProblemFailure

# Of containers. Deeper ones are more likely to contain themselves.
MAX_DEPTH = 16
_MAX_INTEGER = 2**63
_ADVICE = (
    "return tensors and plain values in tuples, lists, dictionaries, named tuples or dataclasses"
)


class Returned:
    """The tensors of an answer in their order, and its `structure`: mtmc.v1.Structure with
    `tensor` and a position in place of names. Equal structures are equal dictionaries."""

    def __init__(self, answer, own_module=""):
        """`own_module` is the name of the user's module; raises ProblemFailure
        OUTPUT_UNSUPPORTED for what has no form."""
        self.tensors = []
        self._own_module = own_module
        self.structure = self._taken(answer, "", 0)

    def _taken(self, value, place, depth):
        if isinstance(value, torch.Tensor):
            self.tensors.append(value)
            return {"tensor": len(self.tensors) - 1}
        form = plain(value)
        if form is not None:
            return form
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise ProblemFailure(
                "OUTPUT_UNSUPPORTED",
                f"{_where(place)} is a number that depends on tensor values; "
                "return it as a tensor",
            )
        if depth >= MAX_DEPTH:
            raise ProblemFailure(
                "OUTPUT_UNSUPPORTED", f"{_where(place)} is nested too deeply; return less depth"
            )
        kind, is_own_type = _kind(value)
        if kind is None:
            raise ProblemFailure(
                "OUTPUT_UNSUPPORTED", f"{_where(place)} is a {_type_name(value)}; {_ADVICE}"
            )
        container = {"kind": kind}
        if is_own_type:
            container.update(self._class(type(value), place))
        keys, items, places = _contents(kind, value, place)
        if keys is not None:
            container["keys"] = [self._key(key, place) for key in keys]
        container["items"] = [
            self._taken(item, below, depth + 1) for item, below in zip(items, places)
        ]
        return {"container": container}

    @staticmethod
    def _key(key, place):
        form = plain(key)
        if form is None:
            raise ProblemFailure(
                "OUTPUT_UNSUPPORTED",
                f"{_where(place)} has the key {key!r}; use strings and plain numbers as keys",
            )
        return form

    def _class(self, kind, place):
        """Where an exported file finds the class."""
        found = sys.modules.get(kind.__module__)
        with contextlib.suppress(AttributeError):
            for part in kind.__qualname__.split("."):
                found = getattr(found, part)
        names = [kind.__qualname__, kind.__module__]
        names += [f.name for f in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
        if found is not kind or not "".join(names).isascii():
            raise ProblemFailure(
                "OUTPUT_UNSUPPORTED",
                f"{_where(place)} is a {kind.__qualname__}, which cannot be found by that name; "
                "define the class at the top of the file, with names of ASCII letters",
            )
        is_own = kind.__module__ == self._own_module
        return {"module": "" if is_own else kind.__module__, "className": kind.__qualname__}


def tensors_of(answer):
    """Those that `forward` returned, in the order of a trace; what has no form is left out."""
    if isinstance(answer, torch.Tensor):
        return [answer]
    kind, _ = _kind(answer)
    if kind is None:
        return []
    return [tensor for item in _contents(kind, answer, "")[1] for tensor in tensors_of(item)]


@contextlib.contextmanager
def flattened(model, own_module):
    """In the block `model` returns a tuple of its tensors. Gives a list whose last element is
    the structure of the answer that was last."""
    structures = []
    whole = model.forward
    own = vars(model).get("forward")

    @functools.wraps(whole)
    def forward(*arguments, **keywords):
        returned = Returned(whole(*arguments, **keywords), own_module)
        structures.append(returned.structure)
        return tuple(returned.tensors)

    vars(model)["forward"] = forward
    try:
        yield structures
    finally:
        del vars(model)["forward"]
        if own is not None:
            vars(model)["forward"] = own


def named(structure, names):
    """mtmc.v1.Structure: `names` has what stands at each position of a tensor or leaf."""
    for kind in ("tensor", "leaf"):
        if kind in structure:
            return names[structure[kind]]
    if "container" not in structure:
        return structure
    container = structure["container"]
    items = [named(item, names) for item in container["items"]]
    return {"container": {**container, "items": items}}


def is_formed_as(structure, result):
    """Whether `structure` has the containers and plain values of mtmc.v1.Structure `result`."""
    if "tensor" in structure:
        return "output" in result or "input" in result
    if "container" not in structure or "container" not in result:
        return structure == result
    own, other = structure["container"], result["container"]
    return (
        len(own["items"]) == len(other["items"])
        and {**own, "items": 0} == {**other, "items": 0}
        and all(map(is_formed_as, own["items"], other["items"]))
    )


def positions(structure):
    """Of the first tensor in which each output of mtmc.v1.Structure is returned, by its name."""
    first = {}
    for position, leaf in enumerate(_tensor_leaves(structure)):
        if "output" in leaf:
            first.setdefault(leaf["output"], position)
    return first


def _tensor_leaves(structure):
    if "container" in structure:
        for item in structure["container"]["items"]:
            yield from _tensor_leaves(item)
    elif "output" in structure or "input" in structure:
        yield structure


def plain(value):
    """mtmc.v1.Structure of a value without parts; None where it is none."""
    # A subclass, such as that of an enumeration, says more than its number.
    if value is None:
        return {"none": {}}
    if type(value) is bool:
        return {"boolValue": value}
    if type(value) is int and -_MAX_INTEGER <= value < _MAX_INTEGER:
        # As text, which every JSON reader keeps exactly.
        return {"intValue": str(value)}
    if type(value) is float:
        return {"floatValue": _real(value)}
    if type(value) is str:
        return {"stringValue": value}
    return None


def _real(value):
    if value != value:
        return "NaN"
    if value in (float("inf"), -float("inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _kind(value):
    """mtmc.v1.Structure.Container.Kind, and whether its class is to be named; None without."""
    kind = type(value)
    builtin = {tuple: "KIND_TUPLE", list: "KIND_LIST", dict: "KIND_DICTIONARY"}.get(kind)
    if builtin:
        return builtin, False
    if kind is collections.OrderedDict:
        return "KIND_DICTIONARY", True
    if dataclasses.is_dataclass(kind):
        return "KIND_DATACLASS", True
    if isinstance(value, tuple):
        if hasattr(kind, "_fields") and hasattr(kind, "_make"):
            return "KIND_NAMED_TUPLE", True
        if kind is torch.Size or hasattr(kind, "n_sequence_fields"):
            return "KIND_SEQUENCE", True
    return None, False


def _contents(kind, value, place):
    """Keys or None, items, and the place of each item for messages."""
    if kind == "KIND_DICTIONARY":
        return list(value), list(value.values()), [f"{place}[{key!r}]" for key in value]
    if kind == "KIND_DATACLASS":
        names = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
        return names, [getattr(value, name) for name in names], [f"{place}.{n}" for n in names]
    return None, list(value), [f"{place}[{index}]" for index in range(len(value))]


def _where(place):
    return f"what forward returns at {place}" if place else "what forward returns"


def _type_name(value):
    return type(value).__qualname__
