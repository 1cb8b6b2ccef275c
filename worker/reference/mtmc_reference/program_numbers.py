# SPDX-License-Identifier: Apache-2.0
"""Numbers that stand in a program and not in its problem: what it has assumed, tiled or capped."""

import math

import torch

from .distribution import MIXED
from .graph_domain import number
from .workload import Key

# What stands in any program.
_ANYWHERE = frozenset((0.0, 0.5, 1.0, 2.0))
# Beyond these, products of two elements leave the range of FP32, or rounding decides them.
_LEAST, _MOST = 1e-15, 1e15


class ProgramKeys:
    """Keys of workloads, those of the program at hand among them: mixed ones of a salt, which go
    around numbers of its text."""

    def __init__(self, graph, seed_of):
        self._known = known_numbers(graph)
        self._seed_of = seed_of
        # Those of the program at hand.
        self._made = []

    def make(self, seed_index, distribution, salt, numbers=()):
        """The key of a workload, around one of the `numbers` that are no numbers of the problem."""
        own = own_numbers(numbers, self._known) if numbers else []
        around = chosen(own, seed_index, self._seed_of("number", salt))
        return Key(seed_index, distribution, salt, around)

    def replaced(self, key):
        """Keys of the programs before, if `key` is of another one; nobody asks for them again."""
        if not key.salt or key.distribution != MIXED:
            return []
        before = [other for other in self._made if other.salt != key.salt]
        self._made = [other for other in self._made if other.salt == key.salt] + [key]
        return before


def known_numbers(graph):
    """What a graph has as an argument or as an extent, a stride or a size, and any program."""
    return _ANYWHERE | _arguments(graph) | _sizes(graph)


def own_numbers(numbers, known):
    """Those of the positive `numbers` that a model can be asked about and that are not `known`, from
    the least."""
    found = {float(value) for value in numbers if _LEAST <= value <= _MOST} - known
    return sorted(found)


def chosen(numbers, turn, seed):
    """One of the numbers of `own_numbers`, another one in each turn as far as there are more, powers
    of two last, which tell least; 0 where there are none."""
    if not numbers:
        return 0.0
    generator = torch.Generator().manual_seed(seed % 2**63)
    order = [numbers[place] for place in torch.randperm(len(numbers), generator=generator).tolist()]
    order.sort(key=lambda value: math.frexp(value)[0] == 0.5)
    return order[turn % len(order)]


def _arguments(graph):
    found = set()
    for node in graph["nodes"]:
        pending = list(node["arguments"])
        while pending:
            argument = pending.pop()
            pending += argument.get("list", {}).get("elements", ())
            value = number(argument)
            if value is not None:
                found.add(abs(float(value)))
    return found


def _sizes(graph):
    found = set()
    types = [entry["type"] for entry in graph["inputs"]]
    for node in graph["nodes"]:
        types += node["resultTypes"]
    for kind in types:
        size = 1
        for extent in reversed([int(extent) for extent in kind.get("shape", ())]):
            size *= extent
            found |= {float(extent), float(size)}
    return found
