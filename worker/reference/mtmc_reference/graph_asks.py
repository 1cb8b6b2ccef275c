# SPDX-License-Identifier: Apache-2.0
"""What the operators of a graph ask of mixed workloads that few graphs do: (kind, number), or (kind,
names of inputs).

    beside    inputs next to what they are subtracted from, or it from them
    far       both far from zero, by the same number
    off       the same by less, where what is added to sums moves them
    followed  places that lead to places: each to the one before it, or all in one circle
    joined    whole numbers that together are compared with others, as if they were packed into one
    count     so many that are true, or stand out, as is compared with how many are
    halves    quotients half way between whole numbers, which are rounded
    powers    elements at powers of that number, and next to them
    huge      elements whose squares leave the range
"""

from .graph_domain import CARRIERS, is_divided, number, operator
from .operands import Operands

_DIFFERENCES = frozenset("sub rsub cdist _cdist_forward pairwise_distance".split())
_COMPARES = frozenset("eq ne lt le gt ge".split())
_COUNTS = frozenset({"sum", "cumsum", "count_nonzero"})
_DIVIDES = frozenset({"div", "mul", "true_divide"})
_ROUNDS = frozenset("round floor ceil trunc frac fix remainder fmod".split())
_EXPONENTS = frozenset("frexp ldexp log2 exp2".split())
_BEYOND_SQUARES = frozenset("asinh acosh hypot atan arctan atan2 arctan2 log1p logaddexp angle".split())
_FINDS = frozenset("index _unsafe_index index_select gather take".split())
# Columns of a tensor that may be fields of one number.
MOST_FIELDS = 4
# Counts with which something is compared, at most so many of them, none larger.
_MOST_COUNTS, _MOST_COUNT = 3, 1 << 12
# Powers of ten with which numbers are compared, or by which they are divided.
_TENS = frozenset(10.0**power for power in range(1, 16))


def asks(domain):
    """Those of a GraphDomain, each once."""
    found, operands = [], Operands(domain)
    operators = {operator(node) for node in domain.nodes}
    found += _of_differences(domain, operands)
    named = {"joined": _joined(domain, operands), "followed": _followed(domain, operands)}
    found += [(kind, names) for kind, names in named.items() if names]
    counts = [count for node in domain.nodes for count in _compared_counts(node, operands, domain)]
    found += [("count", count) for count in list(dict.fromkeys(counts))[:_MOST_COUNTS]]
    divisions = [node for node in domain.nodes if operator(node) in _DIVIDES]
    if operators & _ROUNDS and any(_takes_input(node, operands, domain) for node in divisions):
        found.append(("halves", 0))
    if operators & _EXPONENTS:
        found.append(("powers", 2))
    if "log10" in operators or any(_has_ten(node) for node in domain.nodes):
        found.append(("powers", 10))
    if operators & _BEYOND_SQUARES:
        found.append(("huge", 0))
    return tuple(found)


def _of_differences(domain, operands):
    """Of rows of the same length that are subtracted: those that are inputs, in any form, lie beside
    each other; what an input is added to is moved by it."""
    beside, far, off = [], [], []
    for node in domain.nodes:
        values = domain.values_of(node)[:2]
        if operator(node) not in _DIFFERENCES or len(set(values)) < 2:
            continue
        lengths = [(domain.shape(value) or [1])[-1] for value in values]
        movers = [operands.mover(value) for value in values]
        if lengths[0] != lengths[1] or lengths[0] < 2 or not all(movers):
            continue
        if any(domain.is_whole(each) or domain.is_truth(each) for each in (*values, *movers)):
            continue
        is_plain = all(map(operands.origin, values))
        beside += movers if is_plain else []
        far += movers if is_plain else []
        off += [] if is_plain else movers
    found = {"beside": beside, "far": far, "off": off}
    return [(kind, tuple(dict.fromkeys(names))) for kind, names in found.items() if names]


def _followed(domain, operands):
    """Inputs of places that an operator finds at places."""
    found = []
    for node in domain.nodes:
        values = domain.values_of(node)
        if operator(node) in _FINDS and len(values) == 2 and all(map(domain.is_whole, values)):
            found += operands.sources(values[0])
    names = [name for name in dict.fromkeys(found) if domain.is_whole(name) and len(domain.shape(name)) == 1]
    return tuple(names)


def _joined(domain, operands):
    """Inputs of whole numbers, or that are rounded to such, of which one is compared with another:
    two of them, or one that has a few columns."""
    found = []
    for node in domain.nodes:
        values = domain.values_of(node)
        if operator(node) in _COMPARES and len(values) == 2 and all(map(domain.is_whole, values)):
            found += [operands.counted(value) for value in values]
    names = [name for name in dict.fromkeys(found) if name and not _is_bound(domain.uses(name))]
    is_one = len(names) == 1 and 2 <= (domain.shape(names[0]) or [1])[-1] <= MOST_FIELDS
    return tuple(names) if is_one or len(names) > 1 else ()


def _is_bound(uses):
    return uses.is_restricted or uses.is_ordered or uses.is_written


def _takes_input(node, operands, domain):
    """Whether an operator of two values takes an input of the graph."""
    values = domain.values_of(node)
    return len(values) > 1 and any(map(operands.origin, values[:2]))


def _compared_counts(node, operands, domain):
    """The numbers with which an operator compares how many are true."""
    if operator(node) not in _COMPARES:
        return
    arguments = dict(zip(node["argumentNames"], node["arguments"]))
    count = number(arguments.get("other", {}))
    if count is not None and 1 <= count <= _MOST_COUNT and _is_count(arguments["self"].get("value"), operands, domain):
        yield int(count)


def _is_count(value, operands, domain):
    """Whether a value is a sum of what was true or false."""
    has_sum = False
    while (node := operands.maker(value)) is not None:
        if has_sum and domain.is_truth(value):
            return True
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
