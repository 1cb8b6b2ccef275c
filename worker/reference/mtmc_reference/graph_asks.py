# SPDX-License-Identifier: Apache-2.0
"""What the operators of a graph ask of mixed workloads that few graphs do: (kind, number).

    beside    inputs next to what they are subtracted from, or it from them
    far       both far from zero, by the same number
    count     so many that are true, or stand out, as is compared with how many are
    halves    quotients half way between whole numbers, which are rounded
    powers    elements at powers of that number, and next to them
    huge      elements whose squares leave the range
"""

from .graph_domain import CARRIERS, is_divided, number, operator

_DIFFERENCES = frozenset("sub rsub cdist _cdist_forward pairwise_distance".split())
_COMPARES = frozenset("eq ne lt le gt ge".split())
_COUNTS = frozenset({"sum", "cumsum", "count_nonzero"})
_DIVIDES = frozenset({"div", "mul", "true_divide"})
_ROUNDS = frozenset("round floor ceil trunc frac fix remainder fmod".split())
_EXPONENTS = frozenset("frexp ldexp log2 exp2".split())
_BEYOND_SQUARES = frozenset("asinh acosh hypot atan arctan atan2 arctan2 log1p logaddexp angle".split())
# Counts with which something is compared, at most so many of them, none larger.
_MOST_COUNTS, _MOST_COUNT = 3, 1 << 12
# Powers of ten with which numbers are compared, or by which they are divided.
_TENS = frozenset(10.0**power for power in range(1, 16))


def asks(domain):
    """Those of a GraphDomain, each once."""
    found = []
    makers = {result: node for node in domain.nodes for result in node["results"]}
    operators = {operator(node) for node in domain.nodes}
    if any(_takes_two(node, makers, domain) for node in domain.nodes if operator(node) in _DIFFERENCES):
        found += [("beside", 0), ("far", 0)]
    counts = [count for node in domain.nodes for count in _compared_counts(node, makers, domain)]
    found += [("count", count) for count in list(dict.fromkeys(counts))[:_MOST_COUNTS]]
    if operators & _ROUNDS and any(
        _takes_two(node, makers, domain, is_any=True) for node in domain.nodes if operator(node) in _DIVIDES
    ):
        found.append(("halves", 0))
    if operators & _EXPONENTS:
        found.append(("powers", 2))
    if "log10" in operators or any(_has_ten(node) for node in domain.nodes):
        found.append(("powers", 10))
    if operators & _BEYOND_SQUARES:
        found.append(("huge", 0))
    return tuple(found)


def _takes_two(node, makers, domain, is_any=False):
    """Whether an operator takes two inputs of the graph, as they are or in another form, that have
    rows of the same length; of `is_any` one of them suffices, and any form."""
    values = domain.values_of(node)
    if len(values) < 2:
        return False
    origins = [_origin(value, makers, domain) for value in values[:2]]
    if is_any:
        return any(origins)
    if not all(origins) or origins[0] == origins[1]:
        return False
    lengths = [(domain.shape(value) or [1])[-1] for value in values[:2]]
    return lengths[0] == lengths[1] > 1


def _origin(value, makers, domain):
    """The input of the graph that has the elements of a value; None where they were computed."""
    while value in makers:
        node = makers[value]
        values = domain.values_of(node)
        if operator(node) not in CARRIERS or not values:
            return None
        value = values[0]
    return value


def _compared_counts(node, makers, domain):
    """The numbers with which an operator compares how many are true."""
    if operator(node) not in _COMPARES:
        return
    arguments = dict(zip(node["argumentNames"], node["arguments"]))
    count = number(arguments.get("other", {}))
    if count is not None and 1 <= count <= _MOST_COUNT and _is_count(arguments["self"].get("value"), makers, domain):
        yield int(count)


def _is_count(value, makers, domain):
    """Whether a value is a sum of what was true or false."""
    has_sum = False
    while value in makers:
        if has_sum and domain.is_truth(value):
            return True
        node = makers[value]
        op, values = operator(node), domain.values_of(node)
        has_sum |= op in _COUNTS
        if not values or op not in CARRIERS and op not in _COUNTS:
            return False
        value = values[0]
    return has_sum and domain.is_truth(value)


def _has_ten(node):
    """Whether an operator compares with a power of ten, or divides by one with a remainder."""
    arguments = dict(zip(node["argumentNames"], node["arguments"]))
    is_turning = operator(node) in _COMPARES or is_divided(operator(node), arguments)
    return is_turning and number(arguments.get("other", {})) in _TENS
