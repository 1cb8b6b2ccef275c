# SPDX-License-Identifier: Apache-2.0
"""Values of an input at which an operator further down changes its mind.

A graph input is followed through invertible operators of one operand, such as `x * 8 + 1`,
to those that round, compare, or repeat themselves. A landmark is a value there. It is
brought back to the input, and kept where that is exact: elsewhere rounding decides on
which side of it an honest program falls.
"""

import dataclasses
import math

import torch

from .graph_domain import BOUNDS, CARRIERS, OWN_BOUNDS, number, operator

# Longest way to a landmark, and most landmarks of one input.
_MOST_STEPS, _MOST_MARKS = 8, 8
# Halves on each side of zero, and whole periods.
_MOST_HALVES, _MOST_PERIODS = 9, 3
_ROUNDING = frozenset({"round", "floor", "ceil", "trunc", "frac", "fix"})
_WAVES = dict.fromkeys(("sin", "cos", "tan"), 2 * math.pi)
_WHOLE_TYPES = ("DATA_TYPE_I", "DATA_TYPE_U")
_NARROW = {"DATA_TYPE_F16": torch.float16, "DATA_TYPE_BF16": torch.bfloat16}
# Boundaries in a tensor are multiples of it as a rule.
_USUAL_STEP = 0.25
_NORMS = frozenset({"linalg_vector_norm", "norm"})
# Their values are elements of their operand; indices come second.
_EXTREMA = frozenset("amax amin max min cummax cummin".split())
# What has another answer beside -0.0 than beside 0.0, and what makes a number of an infinity.
_ANGLES = frozenset({"atan2", "arctan2"})
_BOUNDED = frozenset("atan arctan tanh sigmoid erf sign clamp hardtanh softsign exp".split())
_DIVISORS = frozenset([("div", "other"), ("reciprocal", "self")])
_SCALING = CARRIERS | {"mul", "neg"}
_AROUND_ZERO = frozenset({"sign", "sgn", "abs", "relu", "nonzero"})
# Operators of one operand: (there, back).
_PLAIN = {
    "neg": (torch.neg, torch.neg),
    "sqrt": (torch.sqrt, torch.square),
    "square": (torch.square, torch.sqrt),
    "reciprocal": (torch.reciprocal, torch.reciprocal),
    "abs": (torch.abs, lambda s: s),
    "relu": (torch.relu, lambda s: s),
    "exp": (torch.exp, torch.log),
    "log": (torch.log, torch.exp),
    "log2": (torch.log2, torch.exp2),
    "exp2": (torch.exp2, torch.log2),
}
# Operators of an operand and a number.
_SCALED = {
    "mul": (lambda x, c: x * c, lambda s, c: s / c),
    "div": (lambda x, c: x / c, lambda s, c: s * c),
    "add": (lambda x, c: x + c, lambda s, c: s - c),
    "sub": (lambda x, c: x - c, lambda s, c: s + c),
    "rsub": (lambda x, c: c - x, lambda s, c: c - s),
}


@dataclasses.dataclass(frozen=True)
class Landmark:
    """`steps` are pairs (there, back) from the input on. At their end there are `points`, or
    multiples of `step`, or what repeats itself after `period`."""

    steps: tuple
    points: tuple = ()
    step: float = 0.0
    period: float = 0.0
    # Whether it shows where whole rows are there.
    is_of_rows: bool = False
    # Type of 16 bits that is rounded to: half way between two of its numbers.
    narrow: torch.dtype = None

    def there(self, x):
        """(value at the end in fp64, whether all on the way is exact in the type of `x`)."""
        value = x.double()
        is_exact = torch.ones(x.shape, dtype=torch.bool, device=x.device)
        for there, _ in self.steps:
            value = there(value)
            is_exact &= value.to(x.dtype).double() == value
        return value, is_exact

    def back(self, value, dtype):
        for _, back in reversed(self.steps):
            value = back(value)
        return value.to(dtype)

    def met(self, x, generator):
        """`x` with each element that can be at the landmark; others stay."""
        if self.points:
            points = torch.tensor(self.points, dtype=torch.float64, device=x.device)
            order = torch.randint(len(points), (1,), generator=generator, device=x.device)
            chosen = points[(torch.arange(x.numel(), device=x.device) + order) % len(points)]
            chosen = chosen.view(x.shape)
        elif self.narrow is not None:
            chosen = _between(self.there(x)[0], self.narrow)
        else:
            near = (self.there(x)[0] / self.step).round()
            span = 2 * _MOST_HALVES + 1
            drawn = torch.randint(span, x.shape, generator=generator, device=x.device)
            # What rounds in the range of `x` alone may meet nothing but zero.
            is_near = torch.rand(x.shape, generator=generator, device=x.device) < 0.5
            chosen = torch.where(is_near, near, (drawn - _MOST_HALVES).double()) * self.step
        found = self.back(chosen, x.dtype)
        value, is_exact = self.there(found)
        return torch.where(is_exact & (value == chosen), found, x)

    def moved(self, x, generator):
        """`x` moved by whole periods, each element by another number of them."""
        span = 2 * _MOST_PERIODS + 1
        number = torch.randint(span, x.shape, generator=generator, device=x.device)
        value = self.there(x)[0] + self.period * (number - _MOST_PERIODS)
        found = self.back(value, x.dtype)
        return torch.where(found.isfinite(), found, x)


def _between(value, narrow):
    """Half way from the number of a type next to each value to the next one away from zero."""
    number = value.to(narrow)
    after = (number.view(torch.int16) + 1).view(narrow)
    return (number.double() + after.double()) / 2


def landmarks(domain, name):
    """Landmarks of the input `name` in a GraphDomain, waves among them."""
    found, pending, seen = [], [(name, ())], {name}
    while pending and len(found) < _MOST_MARKS:
        value, steps = pending.pop(0)
        for node, argument, _ in domain.takers(value):
            arguments = dict(zip(node["argumentNames"], node["arguments"]))
            found += _marks(node, argument, arguments, steps)
            if (operator(node), argument) in _DIVISORS and _is_bounded(domain, node):
                found.append(Landmark(steps, points=(-0.0, 0.0)))
            step = _step(node, argument, arguments)
            if step is not None and len(steps) < _MOST_STEPS:
                results = node["results"][:1] if operator(node) in _EXTREMA else node["results"]
                fresh = [result for result in results if result not in seen]
                seen.update(fresh)
                pending += [(result, steps + step) for result in fresh]
    return found[:_MOST_MARKS]


def _is_bounded(domain, node):
    """Whether an infinity that an operator makes is a number further down."""
    takers = [use for result in node["results"] for use in domain.consumers(result, _SCALING, _MOST_STEPS)]
    return bool(takers) and all(operator(use) in _BOUNDED for use, *_ in takers)


def _step(node, argument, arguments):
    """The pairs by which an operator hands elements on; None where it does otherwise."""
    op = operator(node)
    if op in CARRIERS or op in _EXTREMA and argument == "self" and "other" not in arguments:
        return ()
    if argument != "self" or arguments.get("rounding_mode", {}).get("stringValue"):
        return None
    if op in _PLAIN:
        return (_PLAIN[op],)
    if op == "pow" and number(arguments.get("exponent", {})) == 2:
        return (_PLAIN["square"],)
    factor, weight = (number(arguments.get(name, {})) for name in ("other", "alpha"))
    if op not in _SCALED or not _is_short(factor) or weight not in (1, None):
        return None
    there, back = _SCALED[op]
    # A quotient is a product for whoever is in a hurry: exact for powers of two alone.
    if op == "div" and math.frexp(factor)[0] not in (0.5, -0.5):
        return None
    if op == "mul" and not factor:
        return None
    return ((lambda x: there(x, factor), lambda s: back(s, factor)),)


def _is_short(factor):
    """Whether FP32 holds a number as it is."""
    if factor is None or not math.isfinite(factor):
        return False
    return torch.tensor(factor, dtype=torch.float32).double().item() == factor


def _marks(node, argument, arguments, steps):
    op = operator(node)
    if op in _WAVES:
        return [Landmark(steps, period=_WAVES[op])]
    step = _rounded_step(node, argument, arguments)
    if step:
        return [Landmark(steps, step=step)]
    narrow = _narrow_type(node, argument)
    if narrow is not None:
        return [Landmark(steps, narrow=narrow)]
    if op in _ANGLES or op == "signbit" or (op, argument) == ("copysign", "other"):
        return [Landmark(steps, points=(-0.0, 0.0))]
    if argument != "self":
        return []
    points = [*OWN_BOUNDS.get(op, ())]
    for name in BOUNDS.get(op, ()):
        point = number(arguments.get(name, {}))
        if _is_short(point):
            points += [point, -point]
    if op in _NORMS:
        return [Landmark(steps, points=(0.0,), is_of_rows=True)]
    if op in _AROUND_ZERO:
        points.append(0.0)
    return [Landmark(steps, points=tuple(dict.fromkeys(points)))] if points else []


def _narrow_type(node, argument):
    """The type of 16 bits to which an operator rounds its operand; None where it does not."""
    if argument != "self" or operator(node) not in ("to", "_to_copy", "type", "type_as"):
        return None
    types = [t.get("dataType", "") for t in node["resultTypes"]]
    return _NARROW.get(types[0]) if types else None


def _rounded_step(node, argument, arguments):
    """Half of the step in which an operator rounds its operand; None where it does not."""
    op = operator(node)
    if argument != "self" and (op, argument) != ("bucketize", "input"):
        return None
    if op in ("bucketize", "searchsorted"):
        return _USUAL_STEP
    if op in _ROUNDING:
        decimals = number(arguments.get("decimals", {}))
        return 0.5 if not decimals else None
    if op in ("to", "_to_copy", "type"):
        types = [t.get("dataType", "") for t in node["resultTypes"]]
        return 0.5 if any(t.startswith(_WHOLE_TYPES) for t in types) else None
    factor = number(arguments.get("other", {}))
    if op in ("remainder", "fmod", "floor_divide") or (
        op == "div" and arguments.get("rounding_mode", {}).get("stringValue")
    ):
        return abs(factor) / 2 if factor and _is_short(factor) else None
    if op.startswith("fake_quantize") and number(arguments.get("scale", {})):
        return number(arguments["scale"]) / 2
    return None
