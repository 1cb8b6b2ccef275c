# SPDX-License-Identifier: Apache-2.0
"""Arguments of `forward` that are nested in tuples, lists and dictionaries.

Everything after the intake knows arguments by position, as tensors and plain numbers.
So a model with nested ones gets a `forward` of its leaves, in the order in which they
stand, that puts them together again:

    def forward(self, points, options_scale, options_masks_0):
        return _whole(self, points, {'scale': options_scale, 'masks': [options_masks_0]})

It is written as text and not as a walk over the structure, so that it costs the baselines
nothing and every tracer and compiler reads it as what it is.
"""

import inspect

from .failure import ProblemFailure
from .returned import MAX_DEPTH, plain
from .values import Names



class Structure:
    """How the arguments that `get_inputs` returned are nested. Equal by their text."""

    def __init__(self, arguments, names):
        """`names` are the parameters of `forward`, of which there may be fewer."""
        self._names = Names()
        # Types of named tuples by the name under which the text has them.
        self._types = {}
        self.leaf_names = []
        self.is_flat = True
        made = [
            self._made(value, names[index] if index < len(names) else f"x{index}", 0)
            for index, value in enumerate(arguments)
        ]
        self._text = ", ".join(expression for expression, _ in made)
        # The arguments as mtmc.v1.Structure, with `leaf` and a position in place of names.
        self.described = [description for _, description in made]

    def __eq__(self, other):
        return (self._text, self._types) == (other._text, other._types)

    def flatten(self, model):
        """Gives `model` a `forward` that takes the leaves."""
        base = type(model)
        parameters = "".join(f", {name}" for name in self.leaf_names)
        source = f"def forward(self{parameters}):\n    return _whole(self, {self._text})\n"
        scope = {**self._types, "_whole": base.forward}
        exec(compile(source, "<arguments>", "exec"), scope)
        model.__class__ = type(base.__name__, (base,), {"forward": scope["forward"]})

    def _made(self, value, wish, depth):
        """Text that makes the value of its leaves, whose names begin with `wish`, and its
        description."""
        if depth >= MAX_DEPTH and _is_container(value):
            raise ProblemFailure(
                "INPUTS_WRONG_TYPE", f"input {wish} is nested too deeply; return flatter arguments"
            )
        if not _is_container(value):
            return self._leaf(wish)
        self.is_flat = False
        if type(value) is dict:
            return self._dictionary(value, wish, depth)
        made = [self._made(item, f"{wish}_{i}", depth + 1) for i, item in enumerate(value)]
        body = "".join(f"{item}, " for item, _ in made)
        items = [description for _, description in made]
        if type(value) is list:
            return f"[{body}]", _container("KIND_LIST", items)
        if type(value) is tuple:
            return f"({body})", _container("KIND_TUPLE", items)
        name = f"_type_{type(value).__name__}_{len(self._types)}"
        self._types[name] = type(value)
        return f"{name}({body})", _container("KIND_TUPLE", items)

    def _dictionary(self, value, wish, depth):
        for key in value:
            if not isinstance(key, (str, int)) or plain(key) is None:
                raise ProblemFailure(
                    "INPUTS_WRONG_TYPE",
                    f"input {wish} has the key {key!r}; use keys that are strings or whole numbers",
                )
        made = [self._made(item, f"{wish}_{key}", depth + 1) for key, item in value.items()]
        text = ", ".join(f"{key!r}: {item}" for key, (item, _) in zip(value, made))
        description = _container("KIND_DICTIONARY", [each for _, each in made])
        description["container"]["keys"] = [plain(key) for key in value]
        return "{" + text + "}", description

    def _leaf(self, wish):
        self.leaf_names.append(self._names.take(wish))
        return self.leaf_names[-1], {"leaf": len(self.leaf_names) - 1}


def _container(kind, items):
    return {"container": {"kind": kind, "items": items}}


def leaves(arguments):
    """Tensors and numbers in tuples, lists and dictionaries, in the order in which they stand."""
    found = []
    for value in arguments.values() if type(arguments) is dict else arguments:
        found.extend(leaves(value) if _is_container(value) else [value])
    return found


def parameter_names(model):
    """Names that the user gave the positional arguments of `forward`."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(model.forward).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind in kinds]


def _is_container(value):
    is_named = isinstance(value, tuple) and hasattr(value, "_fields")
    return type(value) in (dict, list, tuple) or is_named
