# SPDX-License-Identifier: Apache-2.0
"""Numbers of a graph around which mixed workloads go: guards, and those with which it fills,
compares or bounds."""

import dataclasses
import math

from .graph_asks import asks
from .graph_domain import number, operator
from .guards import guards, sizes

# Arguments that become elements.
_FILLS = {
    "masked_fill": ("value",),
    "where": ("self", "other"),
    "pad": ("value",),
    "constant_pad_nd": ("value",),
    "index_fill": ("value",),
    "threshold": ("value",),
}
_LOGARITHMS = frozenset("log log2 log10 xlogy entr".split())
_WAVES = frozenset("sin cos tan sinc polar".split())
# Beyond these, products of two elements leave the range of FP32, or rounding decides them.
_LEAST, _MOST = 2e-2, 1e15


@dataclasses.dataclass(frozen=True)
class GraphNumbers:
    """Of one graph: small numbers that keep a divisor from zero, the sizes of what stands beside
    them, and others."""

    guards: tuple = ()
    sizes: tuple = ()
    others: tuple = ()
    # Whether an operator takes a logarithm, as powers do, of which little is left next to one.
    has_logarithm: bool = False
    # Whether an operator has a period.
    has_wave: bool = False
    # What its operators ask of workloads, as `graph_asks` has it.
    asks: tuple = ()

    @classmethod
    def of(cls, domain):
        """Those of a GraphDomain."""
        found = [*_fills(domain), *domain.bounds()]
        others = [float(value) for value in found if _LEAST < abs(value) <= _MOST]
        has_logarithm = any(map(_takes_logarithm, domain.nodes))
        has_wave = any(operator(node) in _WAVES for node in domain.nodes)
        distinct = tuple(dict.fromkeys(others))
        return cls(tuple(guards(domain)), tuple(sizes(domain)), distinct, has_logarithm, has_wave, asks(domain))


def _takes_logarithm(node):
    """Whether it is one, or a power whose exponent is no number of the code."""
    if operator(node) == "pow":
        return "value" in dict(zip(node["argumentNames"], node["arguments"])).get("exponent", {})
    return operator(node) in _LOGARITHMS


def _fills(domain):
    for node in domain.nodes:
        arguments = dict(zip(node["argumentNames"], node["arguments"]))
        for name in _FILLS.get(operator(node), ()):
            value = number(arguments.get(name, {}))
            if value is not None and math.isfinite(value):
                yield value
