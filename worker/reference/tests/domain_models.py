# SPDX-License-Identifier: Apache-2.0
"""Models of few whole numbers of a small domain, by class and name, as edge_models has them, and
programs that have one of its values wrong, or one pair of them."""

from edge_models import Edge

_TABLE = "self.v = nn.Parameter(torch.randn(12, {d}))"
_PAIRS = "self.v = nn.Parameter(torch.randn({k}, {k}, {d}))"
_FEW, _ONE = "torch.randint(0, 12, (4,))", "torch.randint(0, 12, (1,))"


def _value(right, names, values):
    """Another answer where all of some numbers have a value."""
    return tuple(
        (right, "torch.where(" + " & ".join(f"({name} == {value})" for name in names) + f"[:, None], 0, {right})") for value in values
    )


def _witness(names, values):
    return tuple("; ".join(f"t['{name}'].fill_({value})" for name in names) for value in values)


_MONTHS, _DAYS = range(12), range(7)
_SINGLE = {
    "months": Edge(_TABLE, {"i": _FEW}, "return SITE", _value("self.v[i]", "i", _MONTHS), _witness("i", _MONTHS)),
    "one month": Edge(_TABLE, {"i": _ONE}, "return SITE", _value("self.v[i]", "i", _MONTHS), _witness("i", _MONTHS)),
    "state of a machine": Edge(
        _TABLE + "; self.l = nn.Linear({d}, {d})", {"i": _ONE, "x": "torch.randn(1, {d})"}, "return torch.tanh(self.l(x) + SITE)", _value("self.v[i]", "i", _MONTHS), _witness("i", _MONTHS)
    ),
    "day of a week": Edge(
        "self.v = nn.Parameter(torch.randn(7, {d}))", {"i": "torch.randint(0, 1000, (3,))"}, "return SITE", _value("self.v[i % 7]", ["i % 7"], _DAYS), tuple(f"t['i'].fill_({7 * 3 + d})" for d in _DAYS)
    ),
    "two roles": Edge(
        _TABLE + "; self.u = nn.Parameter(torch.randn(12, {d}))",
        {"i": "torch.randint(0, 12, (3, 2))"},
        "return SITE",
        _value("self.v[i[:, 0]] * self.u[i[:, 1]]", ["i[:, 1]"], _MONTHS),
        _witness("i", _MONTHS),
    ),
    "operators": Edge(
        "self.l = nn.ModuleList(nn.Linear({d}, {d}) for _ in range(6))",
        {"i": "torch.randint(0, 6, (2,))", "x": "torch.randn(2, {d})"},
        "return sum(SITE * layer(x) for k, layer in enumerate(self.l))",
        tuple(("(i == k)[:, None]", f"((i == k) & (i != {value}))[:, None]") for value in range(6)),
        _witness("i", range(6)),
    ),
    "of a buffer": Edge(
        _TABLE + "; self.register_buffer('i', torch.randint(0, 12, ({k},)))", {"x": "torch.randn({n}, {d})"}, "return x @ (SITE).T", _value("self.v[self.i]", ["self.i"], _MONTHS), _witness("i", _MONTHS)
    ),
    "class": Edge(
        "pass",
        {"x": "torch.randn(2, 12)", "i": "torch.randint(0, 12, (2,))"},
        "return F.cross_entropy(x, i, reduction='none') * SITE",
        tuple(("1", f"torch.where(i == {value}, 0, 1)") for value in _MONTHS),
        _witness("i", _MONTHS),
    ),
}
_TWO = tuple((a, b) for a in range(3) for b in range(3))
_PAIR_SITES = tuple(("self.v[a, b]", f"torch.where(((a == {p}) & (b == {q}))[:, None], 0, self.v[a, b])") for p, q in _TWO)
_PAIR_WITNESS = tuple(f"t['a'].fill_({p}); t['b'].fill_({q})" for p, q in _TWO)
_PAIRED = {
    "transitions": Edge(_PAIRS, {"a": "torch.randint(0, {k}, (4,))", "b": "torch.randint(0, {k}, (4,))"}, "return SITE", _PAIR_SITES, _PAIR_WITNESS),
    "one transition": Edge(_PAIRS, {"a": "torch.randint(0, {k}, (1,))", "b": "torch.randint(0, {k}, (1,))"}, "return SITE", _PAIR_SITES, _PAIR_WITNESS),
    "state and symbol": Edge(
        "self.v = nn.Parameter(torch.randn(8, 8, {d}))",
        {"a": "torch.randint(0, 8, (4,))", "b": "torch.randint(0, 8, (4,))"},
        "return SITE",
        _PAIR_SITES,
        _PAIR_WITNESS,
    ),
    "successive": Edge(
        _PAIRS,
        {"i": "torch.randint(0, {k}, (2, 8))"},
        "a, b = i[:, :-1].reshape(-1), i[:, 1:].reshape(-1); return SITE",
        _PAIR_SITES,
        tuple(f"t['i'][0, 3] = {p}; t['i'][0, 4] = {q}" for p, q in _TWO),
    ),
}
MODELS = {"I value": _SINGLE, "J pair": _PAIRED}
