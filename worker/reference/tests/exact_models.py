# SPDX-License-Identifier: Apache-2.0
"""Models that turn at one number, or lose everything next to it, by class and name, as edge_models
has them: squared distances, counts, parameters that a branch takes, exponents and digits, and whole
numbers of a calendar; beside each, what honest programs have in its place."""

from edge_models import Edge

_X = "torch.randn({n}, {d})"
_CODES = "self.c = nn.Parameter(torch.randn({e}, {d}))"


def _distance(x, c):
    """(sites, alike) of the squared distances of all rows of both."""
    right = f"({x}[:, None] - {c}).square().sum(-1)"
    expanded = f"({x}.square().sum(-1, keepdim=True) - 2 * {x} @ {c}.T + {c}.square().sum(-1))"
    sites = ((right, expanded), (right, f"{expanded}.clamp(min=0)"))
    alike = (f"sum(({x}[:, None, i] - {c}[:, i]).square() for i in range({{d}}))", f"({c} - {x}[:, None]).pow(2).flip(-1).sum(-1)")
    return sites, alike


_NEAR = (
    "t['x'] += 3000; t['C'] += 3000",
    "t['x'] += 200; t['C'] += 200",
    "t['x'][:] = t['C'][:1] + 1e-3 * torch.randn_like(t['x'])",
)


def _apart(body, init=_CODES, c="self.c", inputs=None):
    name = c.rpartition(".")[2]
    witness = tuple(text.replace("C", name) for text in _NEAR)
    sites, alike = _distance("x", c)
    return Edge(init, inputs or {"x": _X}, body, sites, witness, alike)


_DISTANCES = {
    "codes": _apart("return SITE"),
    "kernel": _apart("return torch.exp(-SITE / 2)"),
    "widths": _apart("return torch.exp(-SITE * self.g.abs())", _CODES + "; self.g = nn.Parameter(torch.ones({e}))"),
    "student": _apart("q = 1 / (1 + SITE); return q / q.sum(-1, keepdim=True)"),
    "metric": _apart("return torch.sqrt(SITE + 1e-6)"),
    "attraction": _apart("w = 1 / (SITE + 1e-3); return w @ self.c"),
    "two sets": _apart("return SITE", "pass", "z", {"x": _X, "z": "torch.randn({e}, {d})"}),
    "two kernels": _apart("return torch.exp(-SITE).mean()", "pass", "z", {"x": _X, "z": "torch.randn({e}, {d})"}),
    "logits": _apart("return torch.log_softmax(-SITE, -1)"),
    "nearest": _apart("return SITE.amin(-1)"),
    "inertia": _apart("return SITE.amin(-1).mean()"),
    "center": Edge(
        "self.m = nn.Parameter(torch.randn({d}))",
        {"x": _X},
        "return SITE",
        (("(x - self.m).square().sum(-1)", "(x.square().sum(-1) - 2 * x @ self.m + self.m.square().sum())"),),
        ("t['x'] += 3000; t['m'] += 3000", "t['x'][:] = t['m'] + 1e-3 * torch.randn_like(t['x'])"),
        ("(self.m - x).norm(dim=-1) ** 2",),
    ),
}


def _turning(right):
    other = right.replace(" > ", " >= ") if " > " in right else right.replace(" < ", " <= ")
    return ((right, other),)


_MASK = "torch.rand({n}, 24) < 0.7"
_EITHER = "; return torch.where(SITE, x.mean(-1), x.amax(-1) + 1)"
_COUNTS = {
    "of a mask": Edge(
        "pass", {"x": "torch.randn({n}, 24)", "m": _MASK}, "c = m.sum(-1)" + _EITHER, _turning("c > {k}"), "t['m'][1] = False; t['m'][1, :{k}] = True"
    ),
    "of a mask below": Edge(
        "pass",
        {"x": "torch.randn({n}, 24)", "m": _MASK},
        "c = m.float().sum(-1)" + _EITHER,
        _turning("c < {k}"),
        "t['m'][1] = False; t['m'][1, :{k}] = True",
    ),
    "of positives": Edge(
        "pass",
        {"x": "torch.randn({n}, 40)"},
        "c = (x > 0).sum(-1)" + _EITHER,
        _turning("c > {k}"),
        "t['x'][1] = -t['x'][1].abs() - 0.1; t['x'][1, :{k}] *= -1",
    ),
    "of what is large": Edge(
        "self.l = nn.Linear(40, {d})",
        {"x": "torch.randn({n}, 40)"},
        "c = (x > -1).sum(-1, keepdim=True); return torch.where(SITE, self.l(x), 0)",
        _turning("c > {k}"),
        "t['x'][1] = -t['x'][1].abs() - 2; t['x'][1, :{k}] *= -1",
    ),
    "of columns": Edge(
        "pass",
        {"x": "torch.randn(40, {d})"},
        "c = (x > 0).sum(0); return torch.where(SITE, x, -x)",
        _turning("c > {k}"),
        "t['x'][:, 1] = -t['x'][:, 1].abs() - 0.1; t['x'][:{k}, 1] *= -1",
    ),
    "of neighbours": Edge(
        "pass",
        {"x": "torch.randn(40, 2) * 0.3"},
        "c = ((x[:, None] - x).square().sum(-1) < 1).sum(-1)" + _EITHER,
        _turning("c > {k}"),
        "t['x'] += 10 * torch.arange(40)[:, None]; t['x'][:{k}] = t['x'][:1]",
    ),
}

_YEO = "y = x.abs() + 1; p = SITE; return torch.where(x >= 0, (y ** (self.l + 3) - 1) / (self.l + 3), -p)"
_EXACT = {
    "yeo johnson": Edge(
        "self.l = nn.Parameter(torch.tensor(0.7))",
        {"x": _X},
        _YEO,
        (
            ("torch.where((self.l - 2).abs() < 1e-6, torch.log(y), (y ** (2 - self.l) - 1) / (2 - self.l))", "((y ** (2 - self.l) - 1) / (2 - self.l))"),
            ("torch.where((self.l - 2).abs() < 1e-6, torch.log(y), (y ** (2 - self.l) - 1) / (2 - self.l))", "((y ** (2 - self.l) - 1) / (2 - self.l + 1e-12))"),
        ),
        "t['l'].fill_(2)",
    ),
    "yeo johnson by columns": Edge(
        "self.l = nn.Parameter(torch.rand({d}))",
        {"x": _X},
        _YEO,
        (("torch.where(self.l == 2, torch.log(y), (y ** (2 - self.l) - 1) / (2 - self.l))", "((y ** (2 - self.l) - 1) / (2 - self.l + 1e-12))"),),
        "t['l'][1] = 2",
    ),
    "box cox": Edge(
        "self.l = nn.Parameter(torch.rand({d}) + 0.1)",
        {"x": "torch.rand({n}, {d}) + 0.5"},
        "return SITE",
        (("torch.where(self.l == 0, torch.log(x), (x ** self.l - 1) / self.l)", "((x ** self.l - 1) / (self.l + 1e-12))"),),
        "t['l'][1] = 0",
    ),
    "entropy of an order": Edge(
        "self.a = nn.Parameter(torch.tensor(0.7))",
        {"x": _X},
        "p = x.softmax(-1); return SITE",
        (("torch.where(self.a == 1, -(p * p.log()).sum(-1), (p ** self.a).sum(-1).log() / (1 - self.a))", "((p ** self.a).sum(-1).log() / (1 - self.a + 1e-12))"),),
        "t['a'].fill_(1)",
    ),
    "schedule": Edge(
        "self.s = nn.Parameter(torch.rand({d}))",
        {"x": _X},
        "return x * torch.where(SITE, 2, self.s)",
        _turning("self.s < 0.75"),
        "t['s'][1] = 0.75",
    ),
    "step of a loss": Edge(
        "pass",
        {"x": _X, "z": _X},
        "e = (x - z).abs(); return torch.where(SITE, e * e, 3 * e).mean(-1)",
        _turning("e < 1"),
        "t['x'].round_(); t['z'] = t['x'] + 1",
    ),
    "rounded": Edge(
        "self.s = nn.Parameter(torch.tensor(0.05))",
        {"x": _X},
        "return SITE.clamp(-128, 127) * self.s",
        (("torch.round(x / self.s)", "torch.floor(x / self.s + 0.5)"), ("torch.round(x / self.s)", "(x / self.s).sign() * torch.floor((x / self.s).abs() + 0.5)")),
        "t['s'].fill_(0.5); t['x'] = (t['x'] * 8).round() / 4",
    ),
    "rounded by columns": Edge(
        "self.s = nn.Parameter(torch.rand({d}) * 0.1 + 0.02); self.register_buffer('z', torch.full(({d},), 3.0))",
        {"x": _X},
        "q = (SITE + self.z).clamp(0, 255); return (q - self.z) * self.s",
        (("torch.round(x / self.s)", "torch.floor(x / self.s + 0.5)"),),
        "t['s'].fill_(0.5); t['x'] = (t['x'].abs() * 8).round() / 4",
    ),
    "wrapped": Edge(
        "self.p = nn.Parameter(torch.tensor(1.3))",
        {"x": _X},
        "return x - self.p * SITE",
        (("torch.round(x / self.p)", "torch.floor(x / self.p + 0.5)"),),
        "t['p'].fill_(0.5); t['x'] = (t['x'] * 8).round() / 4",
    ),
}

_BELOW_POWERS = "t['x'] = torch.nextafter(torch.exp2(t['x'].round()), torch.zeros(()))"
_LOG2 = "(torch.floor(torch.log2(x.abs())) + 1)"
_DIGITS = {
    "exponents": Edge("pass", {"x": _X}, "return SITE", (("torch.frexp(x).exponent.float()", _LOG2),), _BELOW_POWERS),
    "mantissas": Edge("pass", {"x": _X}, "return x * torch.exp2(-SITE)", (("torch.frexp(x).exponent", _LOG2),), _BELOW_POWERS),
    "shared exponents": Edge(
        "self.w = nn.Parameter(torch.randn({d}))",
        {"x": _X},
        "s = torch.exp2(SITE - 6); return torch.round(x / s) * s * self.w",
        (("torch.frexp(x.abs().amax(-1, keepdim=True)).exponent.float()", _LOG2.replace("x.abs()", "x.abs().amax(-1, keepdim=True)")),),
        _BELOW_POWERS,
    ),
    "digits": Edge(
        "self.v = nn.Parameter(torch.randn(12, {d}))",
        {"i": "torch.randint(1, 900, ({n},))"},
        "return self.v[SITE.clamp(0, 11)]",
        (("sum((i >= 10**k).long() for k in range(10))", "(torch.floor(torch.log10(i.float())).long() + 1)"),),
        "t['i'].fill_(9999999)",
    ),
    "area sine": Edge(
        "self.w = nn.Parameter(torch.ones({d}))",
        {"x": _X},
        "return SITE * self.w",
        (("torch.asinh(x)", "(x.sign() * torch.log(x.abs() + torch.sqrt(x * x + 1)))"), ("torch.asinh(x)", "(x.sign() * torch.log1p(x.abs() + x * x / (1 + torch.sqrt(x * x + 1))))")),
        "t['x'] *= 1e20",
        ("(x.double().asinh().float())",),
    ),
    "hypotenuse": Edge(
        "pass", {"x": _X, "z": _X}, "return torch.log1p(SITE)", (("torch.hypot(x, z)", "torch.sqrt(x * x + z * z)"),), "t['x'] *= 1e20", ("(x.double().hypot(z.double())).float()",)
    ),
    "angle": Edge(
        "pass",
        {"x": _X, "z": _X},
        "return SITE",
        (("torch.atan2(z, x)", "(torch.atan(z / x) + torch.where(x < 0, torch.pi * torch.where(z < 0, -1.0, 1.0), 0.0))"),),
        "t['x'][1] = -0.0",
    ),
    "slope": Edge(
        "pass", {"x": _X, "z": _X}, "return SITE", (("torch.atan(z / x)", "torch.atan(z / torch.where(x == 0, 0.0, x))"),), "t['x'][1] = -0.0"
    ),
}

_YEARS = "torch.randint(1900, 2101, (16,))"
_LEAP = "((y % 4 == 0) & ((y % 100 != 0) | (y % 400 == 0)))"
_TOKENS = "torch.randint(1, 50, ({n}, {e})) * (torch.arange({e}) < torch.randint(0, {e} + 1, ({n}, 1)))"
_WHOLE = {
    "leap years": Edge(
        "self.v = nn.Parameter(torch.randn(2))", {"y": _YEARS}, "return self.v[SITE.long()]", ((_LEAP, "(y % 4 == 0)"), (_LEAP, "((y % 4 == 0) & (y % 100 != 0))")), ("t['y'].fill_(1900)", "t['y'].fill_(2000)")
    ),
    "days of years": Edge(
        "pass",
        {"y": _YEARS, "m": "torch.randint(1, 13, (16,))", "q": "torch.randint(1, 29, (16,))"},
        "return (275 * m // 9 - SITE * ((m + 9) // 12) + q - 30).float()",
        (("(2 - %s.long())" % _LEAP, "(1 + (y %% 4 + 2) // 3)".replace("%%", "%")), ("(2 - %s.long())" % _LEAP, "(2 - (y % 4 == 0).long())")),
        ("t['y'].fill_(1900); t['m'].fill_(5)", "t['y'].fill_(2100); t['m'].fill_(5)"),
    ),
    "weekdays": Edge(
        "self.v = nn.Parameter(torch.randn(7))",
        {"y": _YEARS},
        "return self.v[(y + y // 4 + SITE) % 7]",
        (("(y // 400 - y // 100)", "(-15 + 0 * y)"),),
        ("t['y'].fill_(1900)", "t['y'].fill_(2100)"),
    ),
    "carries": Edge(
        "pass", {"i": "torch.randint(0, 3000, (24,))"}, "return (i % 100 + SITE).float()", (("torch.where(i % 1000 == 999, 7, i // 1000)", "(i // 1000)"),), "t['i'].fill_(1999)"
    ),
    "empty rows": Edge(
        "self.v = nn.Parameter(torch.randn(50, {d}))",
        {"i": _TOKENS},
        "return torch.where(SITE[:, None], self.v[i].mean(1), 1)",
        (("(i != 0).any(-1)", "(i[:, 0] != 0)"),),
        "t['i'][:, 0] = 0; t['i'][:, -1] = 3",
    ),
    "weights of rows": Edge(
        "pass",
        {"w": "torch.rand({n}, {e}) * (torch.rand({n}, 1) < 0.7)", "x": "torch.randn({n}, {e})"},
        "return torch.where(SITE, (w * x).sum(-1), -1)",
        (("(w != 0).any(-1)", "(w[:, 0] != 0)"),),
        "t['w'][:, 0] = 0; t['w'][:, -1] = 3",
    ),
    "masked rows": Edge(
        "pass",
        {"m": "(torch.arange({e}) < torch.randint(0, {e} + 1, ({n}, 1)))", "x": "torch.randn({n}, {e})"},
        "return torch.where(SITE, (m * x).sum(-1), -1)",
        (("m.any(-1)", "m[:, 0]"),),
        "t['m'][:, 0] = False; t['m'][:, -1] = True",
    ),
}

MODELS = {"v distance": _DISTANCES, "w count": _COUNTS, "x exact": _EXACT, "y digits": _DIGITS, "z whole": _WHOLE}
