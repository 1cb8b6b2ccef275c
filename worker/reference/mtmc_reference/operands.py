# SPDX-License-Identifier: Apache-2.0
"""Which inputs of a graph an operator takes: as they are, in another form, rounded, or added to what
it takes."""

from .graph_domain import CARRIERS, number, operator

# Operators that add a vector to all rows of what they make: (name, argument).
_BIASES = {
    **dict.fromkeys(("linear", "layer_norm", "group_norm", "batch_norm", "native_layer_norm"), "bias"),
    "addmm": "self",
    "add": "other",
}
# After these a number is still a whole one of steps.
_STEPS = frozenset("floor ceil round trunc mul div".split())


class Operands:
    """Those of a GraphDomain."""

    def __init__(self, domain):
        self._domain = domain
        self._makers = {result: node for node in domain.nodes for result in node["results"]}

    def origin(self, value):
        """The input of the graph that has the elements of a value; None where they were computed."""
        while value in self._makers:
            node = self._makers[value]
            values = self._domain.values_of(node)
            if operator(node) not in CARRIERS or not values:
                return None
            value = values[0]
        return value

    def mover(self, value):
        """The input with which all rows of a value move: its origin, or what was added last."""
        while value in self._makers:
            node = self._makers[value]
            values, bias = self._domain.values_of(node), _BIASES.get(operator(node))
            if bias:
                arguments = dict(zip(node["argumentNames"], node["arguments"]))
                return self.origin(arguments.get(bias, {}).get("value"))
            if operator(node) not in CARRIERS or not values:
                return None
            value = values[0]
        return value

    def counted(self, value):
        """The input that a value has as whole numbers, or as steps of it; None without."""
        while value in self._makers:
            node = self._makers[value]
            arguments = dict(zip(node["argumentNames"], node["arguments"]))
            values, op = self._domain.values_of(node), operator(node)
            is_step = op in _STEPS and len(values) == 1 and number(arguments.get("other", {"intValue": 1})) is not None
            if not values or op not in CARRIERS and not is_step:
                return None
            value = values[0]
        return value

    def sources(self, value):
        """The inputs that a value is made from, by whatever operators."""
        pending, seen, found = [value], {value}, []
        while pending:
            at = pending.pop()
            if at not in self._makers:
                found.append(at)
                continue
            fresh = [v for v in self._domain.values_of(self._makers[at]) if v not in seen]
            seen.update(fresh)
            pending += fresh
        return found

    def maker(self, value):
        """The operator that makes a value; None of an input."""
        return self._makers.get(value)
