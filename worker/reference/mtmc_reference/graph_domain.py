# SPDX-License-Identifier: Apache-2.0
"""What the operators of a traced graph say about the values of an input.

An input is followed through operators that hand elements on as they are, to those that
compute with it. Only what is certain is told: an index that an operator proves legal,
offsets that must be in order, probabilities. Everything else is learned by asking the
reference.
"""

import collections
import dataclasses
import math

# Operators whose results have the elements of their tensors and no others.
CARRIERS = frozenset(
    """
    alias broadcast_to cat chunk clone contiguous copy detach expand expand_as flatten flip
    lift_fresh lift_fresh_copy movedim narrow permute ravel repeat reshape roll select slice split
    split_with_sizes squeeze stack swapaxes t tile to _to_copy transpose type_as unbind unflatten
    unsafe_split unsqueeze view view_as _reshape_copy _unsafe_view
    """.split()
)
# Name of the argument that holds places along an axis `dim` of the first one.
_INDEXED_AXIS = dict.fromkeys(
    """
    index_select gather scatter scatter_add scatter_reduce index_add index_copy index_fill
    index_reduce
    """.split(),
    "index",
)
_INDEXED_LISTS = frozenset({"index", "_unsafe_index", "index_put", "_unsafe_index_put"})
_CLASS_LOSSES = frozenset({"cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss2d"})
_CLASS_LOSSES |= {"nll_loss_forward", "nll_loss2d_forward"}
# Number of the reduction that divides by what counts.
_MEAN = 1
# Its target lists classes up to the first that is negative.
_LIST_LOSS, _END_OF_LIST = "multilabel_margin_loss", -1
# What makes any whole number one between two: a position in a ring, a distance of so much.
_TAMED_BETWEEN = {"remainder": ("other",), "clamp": ("min", "max"), "__and__": ("other",)}
# What is written twice to one place keeps either value.
_OVERWRITES = frozenset({"scatter", "index_copy", "index_put", "_unsafe_index_put"})
_WRITTEN = frozenset({"src", "source", "values", "value"})
# Other operators that are defined for some whole numbers only: (name, argument).
_RESTRICTED = frozenset(
    [
        *((op, "target") for op in ("multi_margin_loss", _LIST_LOSS, "ctc_loss")),
        *(("ctc_loss", name) for name in ("targets", "input_lengths", "target_lengths")),
        *(("_ctc_loss", name) for name in ("targets", "input_lengths", "target_lengths")),
        *((op, "index") for op in ("take", "put")),
        *((op, "self") for op in ("one_hot", "bincount", "grid_sampler_2d")),
        ("repeat_interleave", "repeats"),
        *((f"{op}", "other") for op in ("bitwise_left_shift", "bitwise_right_shift")),
        *((f"__{op}__", "other") for op in ("lshift", "rshift")),
    ]
)
# Operators that a whole number may stop: floats have infinities.
_RESTRICTED_INTEGERS = frozenset(
    [
        *((op, "other") for op in ("div", "floor_divide", "remainder", "fmod")),
        ("pow", "exponent"),
    ]
)
_ORDERED = frozenset(
    [
        ("searchsorted", "sorted_sequence"),
        ("bucketize", "boundaries"),
        ("embedding_bag", "offsets"),
        ("_embedding_bag", "offsets"),
        ("_embedding_bag_forward_only", "offsets"),
    ]
)
# Operators that end a CUDA context where an argument is no probability.
_PROBABILITIES = frozenset(
    [
        ("binary_cross_entropy", "self"),
        ("binary_cross_entropy", "target"),
        ("bernoulli", "self"),
        ("multinomial", "self"),
    ]
)
_COMPARES = frozenset("eq ne lt le gt ge".split())
# Which result of an operator tells where it found something: a place along an axis, whatever
# the values are. Those of `searchsorted` are not: one may lie behind the last place.
_FINDERS = {
    **dict.fromkeys("argmax argmin argsort".split(), 0),
    **dict.fromkeys("sort topk max min median nanmedian kthvalue mode cummax cummin".split(), 1),
}
# Arguments that say where an operator changes its mind.
BOUNDS = {
    "clamp": ("min", "max"),
    "clamp_min": ("min",),
    "clamp_max": ("max",),
    "hardtanh": ("min_val", "max_val"),
    "threshold": ("threshold",),
    "softplus": ("threshold",),
    "softshrink": ("lambd",),
    "hardshrink": ("lambd",),
    **{op: ("other",) for op in (*_COMPARES, "maximum", "minimum")},
}
OWN_BOUNDS = {"relu6": (0.0, 6.0), "hardswish": (-3.0, 3.0), "hardsigmoid": (-3.0, 3.0)}
# Both sides of zero.
_SYMMETRIC = frozenset({"softshrink", "hardshrink"})
_MOST_BOUNDS = 8
# Those that leave a remainder.
_DIVIDED = frozenset({"remainder", "fmod", "floor_divide"})
_MOST_TURNS = 16


@dataclasses.dataclass
class Uses:
    """What is certain of one input."""

    # Smallest and largest whole number that every operator accepts; None where none tells.
    legal: tuple = None
    # Values that mean something else to an operator, such as classes that are ignored.
    special: tuple = ()
    # Whole numbers of the code with which it is compared.
    compared: tuple = ()
    # Whole numbers of the code by which it is divided with a remainder, as those of a calendar.
    divisors: tuple = ()
    # Of the special ones, what stands for elements that do not count in a mean.
    ignored: tuple = ()
    # Whether elements must not decrease.
    is_ordered: bool = False
    # Whether elements must lie between 0 and 1.
    is_probability: bool = False
    # Whether places that are written must differ where they did.
    is_written: bool = False
    # Whether an operator far down accepts some whole numbers only.
    is_restricted: bool = False

    def turning(self, low, high):
        """Those from `low` to `high` with which it is compared, and beside multiples of what it is
        divided by: of the largest divisors the first, the last and one between."""
        found = [value for value in self.compared if low <= value <= high]
        divisors = self.divisors if math.isfinite(low) and math.isfinite(high) else ()
        for divisor in sorted(divisors, reverse=True):
            multiples = range(-(-int(low) // divisor) * divisor, int(high) + 1, divisor)
            for at in {0, len(multiples) // 2, len(multiples) - 1} if multiples else ():
                found += [v for v in (multiples[at], multiples[at] - 1) if v >= low]
        return list(dict.fromkeys(found))[:_MOST_TURNS]


class GraphDomain:
    """Uses of the inputs of one graph; of an empty one nothing is known."""

    def __init__(self, graph=None):
        graph = graph or {"inputs": [], "nodes": [], "outputs": []}
        self._types = {entry["name"]: entry["type"] for entry in graph["inputs"]}
        self._inputs = [entry["name"] for entry in graph["inputs"]]
        self._nodes = graph["nodes"]
        # Found when somebody asks.
        self._restricted = None
        # Nodes and argument names by the value that they take.
        self._takers = collections.defaultdict(list)
        for node in self._nodes:
            self._types.update(zip(node["results"], node["resultTypes"]))
            for name, argument in zip(node["argumentNames"], node["arguments"]):
                for place, value in _values(argument):
                    self._takers[value].append((node, name, place))

    def uses(self, name):
        """What is certain of the graph input `name`."""
        found = Uses()
        for node, argument, place in self.consumers(name):
            self._note(found, node, argument, place)
        found.is_restricted = found.legal is not None or self._is_restricted(name)
        return found

    @property
    def nodes(self):
        """The operators of the graph."""
        return self._nodes

    def takers(self, name):
        """(node, name of the argument, place in its list) of each use of a value."""
        return self._takers[name]

    def values_of(self, node):
        """Names of the values that an operator takes."""
        return [value for argument in node["arguments"] for _, value in _values(argument)]

    def shape(self, name):
        """Extents of a value; none where nothing is known."""
        return self._shape({"value": name})

    def is_read(self, name):
        """Whether an operator takes the value."""
        return bool(self._takers[name])

    def bounds(self):
        """Numbers at which an operator of the graph changes its mind."""
        found = []
        for node in self._nodes:
            op = operator(node)
            found += OWN_BOUNDS.get(op, ())
            for name, argument in zip(node["argumentNames"], node["arguments"]):
                value = number(argument) if name in BOUNDS.get(op, ()) else None
                if value is not None and math.isfinite(value):
                    found += [value, -value] if op in _SYMMETRIC else [value]
        return list(dict.fromkeys(found))[:_MOST_BOUNDS]

    def turns(self):
        """(whole number, whether it is a divisor) of those with which an operator compares, or
        by which it divides with a remainder."""
        found = []
        for node in self._nodes:
            op = operator(node)
            arguments = dict(zip(node["argumentNames"], node["arguments"]))
            is_divisor = is_divided(op, arguments)
            names = ("other",) if is_divisor else BOUNDS.get(op, ())
            values = [number(arguments.get(name, {})) for name in names]
            found += [
                (int(value), is_divisor)
                for value in values
                if value and math.isfinite(value) and value == int(value)
            ]
        return list(dict.fromkeys(found))[:_MOST_TURNS]

    def consumers(self, name, through=CARRIERS, most_steps=math.inf):
        """(node, name of the argument, place in its list) of each use of a value, or of what at
        most so many operators of `through` have made of it."""
        pending, seen = [(name, 0)], {name}
        while pending:
            value, steps = pending.pop()
            for node, argument, place in self._takers[value]:
                if operator(node) not in through or steps == most_steps:
                    yield node, argument, place
                    continue
                fresh = [result for result in node["results"] if result not in seen]
                seen.update(fresh)
                pending += [(result, steps + 1) for result in fresh]

    def _note(self, found, node, argument, place):
        op = operator(node)
        key = (op, argument)
        found.is_ordered |= key in _ORDERED
        found.is_probability |= key in _PROBABILITIES
        arguments = dict(zip(node["argumentNames"], node["arguments"]))
        if argument == "self":
            divisor = self._divisor(node)
            is_new = divisor and divisor not in found.divisors
            found.divisors += (divisor,) if is_new else ()
        if op in _COMPARES and argument == "self":
            value = number(arguments.get("other", {}))
            if value is not None and value == int(value) and value not in found.compared:
                found.compared += (int(value),)
        legal = self._legal(op, argument, place, arguments)
        if legal:
            low, high = found.legal or legal
            found.legal = (max(low, legal[0]), min(high, legal[1]))
            found.is_written |= op in _OVERWRITES and self._is_order_seen(arguments)
            found.special += self._special(op, argument, place, arguments)
            is_mean = number(arguments.get("reduction", {})) in (None, _MEAN)
            if is_mean and argument == "target" and "ignore_index" in arguments:
                found.ignored = (number(arguments["ignore_index"]),)

    def _divisor(self, node):
        """The whole number of the code, above one, by which an operator divides; None without."""
        arguments = dict(zip(node["argumentNames"], node["arguments"]))
        value = number(arguments.get("other", {})) if is_divided(operator(node), arguments) else None
        return int(value) if value is not None and value == int(value) and value > 1 else None

    def _is_order_seen(self, arguments):
        """Whether one place shows which of several was written last: not where they are added
        up, or are one number everywhere."""
        is_sum = arguments.get("accumulate", {}).get("boolValue", False)
        written = next(arguments[name] for name in arguments if name in _WRITTEN)
        # A number of the code has no name.
        kind = self._types.get(written.get("value"), {"shape": []})
        return not is_sum and any(int(extent) != 1 for extent in kind.get("shape", ()))

    def _legal(self, op, argument, place, arguments):
        size = self._size(op, argument, place, arguments)
        return (0, size - 1) if size else None

    def _size(self, op, argument, place, arguments):
        """How many places an index can name; None where `argument` is no index."""
        if argument == "indices" and "embedding" in op:
            return self._extent(arguments["weight"], 0)
        if argument == "offsets" and "embedding_bag" in op:
            total = self._extent(arguments["indices"], 0)
            # The last groups may be empty.
            return None if total is None else total + 1
        if argument == _INDEXED_AXIS.get(op):
            return self._extent(arguments["self"], number(arguments["dim"]))
        if argument == "indices" and op in _INDEXED_LISTS:
            return self._extent(arguments["self"], place)
        if argument == "target" and op in _CLASS_LOSSES:
            scores = self._shape(arguments["self"])
            return scores[1 if len(scores) > 1 else 0] if scores else None
        if argument == "target" and op == _LIST_LOSS:
            scores = self._shape(arguments["self"])
            return scores[-1] if scores else None
        return None

    def _special(self, op, argument, place, arguments):
        if argument == "target" and "ignore_index" in arguments:
            return (number(arguments["ignore_index"]),)
        if argument == "target" and op == _LIST_LOSS:
            return (_END_OF_LIST,)
        if argument == "indices" and op in _INDEXED_LISTS:
            return (-1, -self._extent(arguments["self"], place))
        if argument == "offsets":
            return ()
        padding = number(arguments.get("padding_idx", {}))
        return (padding,) if padding is not None and padding >= 0 else ()

    def _shape(self, argument):
        kind = self._types.get(argument.get("value"), {})
        return [int(extent) for extent in kind.get("shape", [])]

    def _extent(self, argument, axis):
        shape = self._shape(argument)
        return shape[axis] if axis is not None and -len(shape) <= axis < len(shape) else None

    def is_whole(self, value):
        """Whether a value has whole numbers."""
        kind = self._types.get(value, {}).get("dataType", "")
        return kind.removeprefix("DATA_TYPE_")[:1] in ("I", "U")

    def is_truth(self, value):
        """Whether its elements are true or false: what is true of how many is seen in any values."""
        return self._types.get(value, {}).get("dataType") == "DATA_TYPE_BOOL"

    def _is_restricted(self, name):
        if self._restricted is None:
            self._restricted = self._find_restricted()
        return name in self._restricted

    def _find_restricted(self):
        """Values of which an operator further down does not define every one, in one pass from
        the end: networks have a thousand operators, and each of their parameters asks."""
        found = set()
        for value in [*self._inputs, *(r for node in self._nodes for r in node["results"])][::-1]:
            # Where a whole number became a float, infinity is an answer.
            is_whole = self.is_whole(value)
            restricted = _RESTRICTED | _ORDERED | (_RESTRICTED_INTEGERS if is_whole else set())
            if any(self._restricts(use, restricted, found) for use in self._takers[value]):
                found.add(value)
        return found

    def _restricts(self, use, restricted, found):
        """Whether a use of a value restricts it, by itself or by what comes after it; `found`
        has the values behind it that are."""
        node, argument, _ = use
        op = operator(node)
        is_index = argument == _INDEXED_AXIS.get(op)
        is_index |= argument in ("indices", "offsets")
        is_index |= argument == "target" and op in _CLASS_LOSSES
        if is_index or (op, argument) in restricted:
            return True
        if _is_taming(node, argument):
            return False
        chosen = _FINDERS.get(op)
        return any(
            result in found and place != chosen and not self.is_truth(result)
            for place, result in enumerate(node["results"])
        )


def operator(node):
    """Name of the operator of a node, without its overload."""
    return node["op"].split("::")[-1].split(".")[0]


def is_divided(op, arguments):
    """Whether an operator leaves a remainder."""
    return op in _DIVIDED or bool(arguments.get("rounding_mode", {}).get("stringValue"))


def _is_taming(node, argument):
    """Whether a result lies between two numbers of the code, whatever the argument is."""
    arguments = dict(zip(node["argumentNames"], node["arguments"]))
    ends = [arguments.get(name, {}) for name in _TAMED_BETWEEN.get(operator(node), ())]
    return argument == "self" and bool(ends) and all(number(end) is not None for end in ends)


def _values(argument, place=0):
    """(position in its list, name) of the values of an argument."""
    if "value" in argument:
        yield place, argument["value"]
    for index, element in enumerate(argument.get("list", {}).get("elements", ())):
        yield from _values(element, index)


def number(argument):
    """The number that an argument is; None where it is none."""
    for key in ("intValue", "floatValue"):
        if key in argument:
            return int(argument[key]) if key == "intValue" else float(argument[key])
    return None
