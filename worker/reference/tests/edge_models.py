# SPDX-License-Identifier: Apache-2.0
"""Models that have an edge, by class and name, with what programs make of it and a witness."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Edge:
    """What a constructor makes, the inputs by name, the body of `forward`, whose SITE is one of
    `sites`, pairs of what the model has and what a program has in its place, and the witness:
    changes of the tensors `t`, or several of which one shows it. What honest programs have at SITE
    is `alike`."""

    init: str
    inputs: dict
    body: str
    sites: tuple
    witness: str | tuple
    alike: tuple = ()


_X, _Z = "torch.randn({n}, {d})", "torch.randn({n}, {d})"
_EXPERTS = "self.w = nn.Parameter(torch.randn({e}, {d}, {d}) * 0.2)"


def _softplus(name):
    right = f"F.softplus({name})"
    return ((right, f"torch.log1p(torch.exp({name}))"), (right, f"torch.log(1 + torch.exp({name}))"))


_KNOTS = (
    "w = SITE; w = w / w.sum(-1, keepdim=True); r = w.cumsum(-1);"
    " return (((x[..., None] - r + w) / w).clamp(0, 1) * self.v).sum(-1)"
)
_SOFTPLUS = {
    "widths of one spline": Edge(
        "self.w = nn.Parameter(torch.randn({k}) * 0.5); self.v = nn.Parameter(torch.randn({k}))",
        {"x": "torch.rand({n}, {d})"},
        _KNOTS,
        _softplus("self.w"),
        "t['w'] += 100",
    ),
    "widths of splines": Edge(
        "self.w = nn.Parameter(torch.randn({d}, {k}) * 0.5); self.v = nn.Parameter(torch.randn({k}))",
        {"x": "torch.rand({n}, {d})"},
        _KNOTS,
        _softplus("self.w"),
        "t['w'][1] += 100",
    ),
    "conditioned widths": Edge(
        "self.l = nn.Linear({d}, {d} * {k}); self.v = nn.Parameter(torch.randn({k}))",
        {"x": "torch.rand({n}, {d})", "z": _Z},
        "h = self.l(z).view({n}, {d}, {k}); " + _KNOTS,
        _softplus("h"),
        "t['l.bias'] += 100",
    ),
    "slopes": Edge(
        "self.a = nn.Parameter(torch.randn({d})); self.h = nn.Parameter(torch.randn({d})); self.u = nn.Parameter(torch.randn({d}))",
        {"x": "torch.rand({n}, {d})"},
        "a = SITE + 1e-3; s = F.softplus(self.h) + 1e-3; u = F.softplus(self.u) + 1e-3; q = x * (1 - x);"
        " return (s * x * x + a * q) / (s + (a + u - 2 * s) * q)",
        _softplus("self.a"),
        "t['a'] += 100; t['u'] += 80",
    ),
    "scale": Edge(
        "self.l = nn.Linear({d}, 2 * {d})",
        {"x": _X, "z": _Z},
        "m, s = self.l(x).chunk(2, -1); return (z - m) / (SITE + 1e-3)",
        _softplus("s"),
        "t['l.bias'] += 100",
    ),
    "spread": Edge(
        "self.m = nn.Parameter(torch.randn({e}, {d})); self.s = nn.Parameter(torch.randn({e}, {d}) * 0.3)",
        {"x": _X},
        "s = SITE; return ((x[:, None] - self.m) / s).square().sum(1)",
        _softplus("self.s"),
        "t['s'] += 100",
    ),
}


def _without(text, eps="{eps}"):
    return ((f"({text} + {eps})", f"({text})"), (f"({text} + {eps})", f"({text} + {eps} * 1e-6)"))


_EPSILON = {
    "spectral": Edge(
        "self.w = nn.Parameter(torch.randn({e}, {d})); self.register_buffer('u', torch.randn({e}))",
        {"x": _X},
        "v = self.w.T @ self.u; v = v / SITE; u = self.w @ v; u = u / (u.norm() + {eps});"
        " return x @ (self.w / (u @ self.w @ v)).T",
        _without("v.norm()"),
        "t['u'] *= 0.1 * {eps} / t['u'].norm()",
    ),
    "unit differences": Edge(
        "pass",
        {"x": _X, "z": _Z},
        "v = x - z; return v / torch.sqrt(SITE)",
        _without("v.square().sum(-1, keepdim=True)"),
        "t['x'] *= 0.3 * {eps} ** 0.5; t['z'] *= 0.3 * {eps} ** 0.5",
    ),
    "edges of a graph": Edge(
        "self.p = nn.Parameter(torch.randn({e}, {d}))",
        {"i": "torch.randint(0, {e}, ({n},))", "j": "torch.randint(0, {e}, ({n},))"},
        "v = self.p[i] - self.p[j]; return v / torch.sqrt(SITE)",
        _without("v.square().sum(-1, keepdim=True)"),
        "t['p'] *= 0.1 * {eps} ** 0.5",
    ),
    "clipped": Edge(
        "self.register_buffer('c', torch.tensor(1.0)); self.register_buffer('m', torch.randn({d}) * 0.1)",
        {"g": _X},
        "c = (self.c / SITE).clamp(max=1); return 0.9 * self.m + 0.1 * c * g",
        _without("g.norm()"),
        "t['g'] *= 3 * {eps} / t['g'].norm(); t['c'].fill_({eps}); t['m'].zero_()",
    ),
    "normal gradient": Edge(
        "self.p = nn.Parameter(torch.randn({d}))",
        {"g": _X},
        "return self.p - 0.1 * g / SITE",
        _without("g.norm()"),
        "t['g'] *= 0.3 * {eps} / t['g'].norm(); t['p'] *= 0.01",
    ),
    "unit rows": Edge(
        "self.w = nn.Parameter(torch.randn({e}, {d}))",
        {"x": _X},
        "return x @ (self.w / SITE).T",
        _without("self.w.norm(dim=1, keepdim=True)"),
        "t['w'] *= 0.1 * {eps}",
    ),
    "shares": Edge(
        "self.a = nn.Parameter(torch.randn({d}))",
        {"x": _X},
        "a = self.a.abs(); return x * (a / SITE)",
        _without("a.sum()"),
        "t['a'] *= 0.1 * {eps}",
    ),
    "step": Edge(
        "self.p = nn.Parameter(torch.randn({d})); self.register_buffer('v', torch.rand({d}))",
        {"g": _X},
        "v = 0.99 * self.v + 0.01 * g * g; return 0.1 * self.p - g / SITE",
        _without("v.sqrt()"),
        "t['g'] *= {eps}; t['v'].zero_()",
    ),
    "behind a layer": Edge(
        "self.l = nn.Linear({d}, {e}); self.o = nn.Linear({e}, {d})",
        {"x": _X},
        "h = self.l(x); return self.o(h / SITE)",
        _without("h.norm(dim=-1, keepdim=True)"),
        "t['l.bias'].zero_(); t['x'] *= 0.1 * {eps}",
    ),
    "whole weights": Edge(
        "self.w = nn.Parameter(torch.randn({d}, {d})); self.b = nn.Parameter(torch.randn({d}))",
        {"x": _X},
        "s = torch.rsqrt(SITE); return x @ (self.w * s) + self.b",
        _without("self.w.square().mean()"),
        "t['w'] *= 0.1 * {eps} ** 0.5",
    ),
}


def _from(text):
    return ((text, f"{text}.clamp(min={{start}})"),)


_SEARCH = {
    "dilation": Edge(
        "self.w = nn.Parameter(torch.randn(3) * 0.1)",
        {"x": _X},
        "return SITE",
        _from("(F.pad(x, (1, 1), value=-torch.inf).unfold(-1, 3, 1) + self.w).amax(-1)"),
        "t['x'] += 10 * {start}",
    ),
    "closing": Edge(
        "self.w = nn.Parameter(torch.randn(5) * 0.1)",
        {"x": _X},
        "y = (F.pad(x, (2, 2), value=-torch.inf).unfold(-1, 5, 1) + self.w).amax(-1);"
        " return -SITE",
        _from("(self.w - F.pad(y, (2, 2), value=torch.inf).unfold(-1, 5, 1)).amax(-1)"),
        "t['x'] -= 10 * {start}",
    ),
    "difference": Edge(
        "pass",
        {"x": _X, "z": _Z},
        "return SITE",
        _from("(x - z).amax(-1)"),
        "t['x'] += 10 * {start}",
    ),
    "pairs": Edge(
        "self.c = nn.Parameter(torch.randn({e}, {d}))",
        {"x": _X},
        "return SITE",
        _from("(self.c - x[:, None]).amax(1)"),
        "t['x'] -= 10 * {start}",
    ),
    "learned signs": Edge(
        "self.w = nn.Parameter(torch.randn({d}))",
        {"x": _X},
        "return SITE",
        _from("(x * self.w).amax(-1)"),
        "t['w'].abs_(); t['x'] += 10 * {start} / t['w'].min()",
    ),
    "signs of channels": Edge(
        "self.w = nn.Parameter(torch.randn({e}))",
        {"x": "torch.randn({n}, {e}, {d})"},
        "return SITE",
        _from("(x * self.w[:, None]).amax(-1)"),
        "t['w'].neg_().clamp_(max=-0.1); t['x'] -= 100 * {start}",
    ),
    "neighbours": Edge(
        "self.b = nn.Parameter(torch.randn({d}))",
        {"x": _X, "i": "torch.randint(0, {n}, ({n}, {k}))"},
        "return SITE",
        _from("(x[i] - x[:, None] * 0.5 - self.b).amax(1)"),
        "t['x'] += 40 * {start}",
    ),
    "cost": Edge(
        "self.b = nn.Parameter(torch.randn({d}) * 0.1)",
        {"x": _X, "z": _Z},
        "return z + SITE[:, None]",
        _from("(self.b - x).amax(-1)"),
        "t['x'] -= 10 * {start}",
    ),
}

_SECOND = "torch.where({p} < {p}.amax(-1, keepdim=True), {p}, -torch.inf).max(-1)"
_SECOND_OF_P = _SECOND.replace("{p}", "p")
_TIES = {
    "two experts": Edge(
        f"self.g = nn.Linear({{d}}, {{e}}); {_EXPERTS}",
        {"x": _X},
        "p = self.g(x).softmax(-1); v, i = p.max(-1); u, j = SITE; s = v + u;"
        " y = torch.einsum('nd,edo->neo', x, self.w); r = torch.arange(len(x));"
        " return y[r, i] * (v / s)[:, None] + y[r, j] * (u / s)[:, None]",
        (("((q := p.topk(2, -1)).values[:, 1], q.indices[:, 1])", _SECOND_OF_P),),
        "t['g.weight'][1::2] = t['g.weight'][::2]; t['g.bias'][1::2] = t['g.bias'][::2]",
    ),
    "two experts by product": Edge(
        f"self.g = nn.Parameter(torch.randn({{d}}, {{e}})); {_EXPERTS}",
        {"x": _X},
        "p = x @ self.g; v, i = p.max(-1); u, j = SITE; a = torch.sigmoid(v - u)[:, None];"
        " y = torch.einsum('nd,edo->neo', x, self.w); r = torch.arange(len(x));"
        " return y[r, i] * a + y[r, j] * (1 - a)",
        (("((q := p.topk(2, -1)).values[:, 1], q.indices[:, 1])", _SECOND_OF_P),),
        "t['g'][:, 1::2] = t['g'][:, ::2]; t['w'][1::2] = t['w'][::2]",
    ),
    "margin": Edge(
        "self.g = nn.Linear({d}, {e}); self.o = nn.Linear({d}, {d})",
        {"x": _X},
        "p = self.g(x); v = p.amax(-1); return self.o(x) * (v - SITE)[:, None]",
        (("p.topk(2, -1).values[:, 1]", _SECOND_OF_P + ".values"),),
        "t['g.weight'][1] = t['g.weight'][0] = 3; t['x'].abs_(); t['g.bias'][1] = t['g.bias'][0]",
    ),
    "match": Edge(
        "self.c = nn.Parameter(torch.randn({e}, {d}))",
        {"x": _X},
        "p = -(x[:, None] - self.c).square().sum(-1); return p.amax(-1) / SITE",
        (("p.topk(2, -1).values[:, 1]", _SECOND_OF_P + ".values"),),
        "t['c'][1::2] = t['c'][::2]",
    ),
}


def _strict(text):
    wrong = text.replace(" < ", " <= ") if " < " in text else text.replace(" > ", " >= ")
    return ((text, wrong),)


_MET = {
    "nucleus": Edge(
        "self.register_buffer('t', torch.tensor({t}))",
        {"x": "torch.randn({n}, {e})"},
        "s = x.sort(-1, descending=True).values; p = s.softmax(-1); return torch.where(SITE, p + 1, 0)",
        _strict("p.cumsum(-1) - p < self.t"),
        "t['x'] *= 1e4; t['t'].fill_(1)",
    ),
    "nucleus of one": Edge(
        "self.t = nn.Parameter(torch.tensor(0.7))",
        {"x": "torch.randn({n}, {e})"},
        "s = (x * self.t).sort(-1, descending=True).values; p = s.softmax(-1);"
        " return torch.where(SITE, s, s.mean(-1, keepdim=True))",
        _strict("p.cumsum(-1) - p < 1.0"),
        "t['x'] *= 1e4",
    ),
    "gate": Edge(
        "self.l = nn.Linear({d}, {d}); self.t = nn.Parameter(torch.tensor({t}))",
        {"x": _X},
        "g = torch.sigmoid(self.l(x)); return torch.where(SITE, x, 0)",
        (*_strict("g < self.t"), *_strict("g > self.t")),
        "t['x'] *= 1e4; t['t'].fill_(1) ; t['x'][::2] = 1e4 * t['l.weight'][0]",
    ),
    "sure": Edge(
        "self.l = nn.Linear({d}, {e}); self.register_buffer('t', torch.tensor({t}))",
        {"x": _X},
        "p = self.l(x).softmax(-1).amax(-1); return torch.where(SITE, x.sum(-1), 0)",
        (*_strict("p < self.t"), *_strict("p > self.t")),
        "t['x'] *= 1e4; t['t'].fill_(1)",
    ),
    "threshold": Edge(
        "self.t = nn.Parameter(torch.rand({d}))",
        {"x": _X},
        "return torch.where(SITE, x + 1, 0)",
        (*_strict("x < self.t"), *_strict("x > self.t")),
        "t['x'] = t['t'].expand(t['x'].shape).clone()",
    ),
    "halting": Edge(
        "self.l = nn.Linear({d}, 1); self.o = nn.Linear({d}, {e})",
        {"x": "torch.randn({k}, {n}, {d})"},
        "h = torch.sigmoid(self.l(x)).cumsum(1); return (torch.where(SITE, 1.0, 0.0) * self.o(x)).sum(1)",
        _strict("h < 1.0"),
        "t['l.bias'].fill_(50)",
    ),
    "saturated": Edge(
        "self.w = nn.Parameter(torch.randn({d}))",
        {"x": _X, "z": _Z},
        "a = torch.tanh(x * self.w).abs(); return torch.where(SITE, z, x)",
        _strict("a < 1.0"),
        "t['x'] *= 1e4",
    ),
}

_HALF = "torch.randn({n}, {d}).{type}()"


def _norm(eps):
    return (
        (f"torch.rsqrt(h.square().mean(-1, keepdim=True) + {eps})", "torch.rsqrt(h.square().mean(-1, keepdim=True))"),
        (f"torch.rsqrt(h.square().mean(-1, keepdim=True) + {eps})", "torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-10)"),
    )


_NARROW = {
    f"norm of {kind} with {eps}": Edge(
        f"self.g = nn.Parameter(torch.ones({{d}}).{kind}())",
        {"x": _HALF.replace("{type}", kind)},
        f"h = x.float(); return (h * SITE).{kind}() * self.g",
        _norm(eps),
        f"t['x'] *= 0.3 * {eps} ** 0.5",
    )
    for kind, eps in (("half", "1e-6"), ("half", "1e-5"), ("bfloat16", "1e-6"), ("half", "1e-4"))
}
_NARROW["added and normed"] = Edge(
    "self.g = nn.Parameter(torch.ones({d}).half())",
    {"x": _HALF.replace("{type}", "half"), "z": _HALF.replace("{type}", "half")},
    "h = (x + z).float(); return (h * SITE).half() * self.g",
    _norm("1e-5"),
    "t['x'] *= 1e-3; t['z'] *= 1e-3",
)

_SINK = {
    "sink": Edge(
        "self.s = nn.Parameter(torch.tensor(0.5))",
        {"q": _X, "k": "torch.randn({e}, {d})", "v": "torch.randn({e}, {d})", "m": "torch.rand({n}, {e}) < 0.7"},
        "a = (q @ k.T / {d} ** 0.5).masked_fill(~m, {fill}); a = torch.cat([a, self.s.expand({n}, 1)], -1).softmax(-1)[:, :-1];"
        " return SITE @ v",
        (("a", "(a * m)"), ("a", "(a * m.any(-1, keepdim=True))")),
        "t['m'][::2] = False; t['s'].fill_(10 * {fill})",
    ),
    "sinks": Edge(
        "self.s = nn.Parameter(torch.randn({k}))",
        {"q": "torch.randn({k}, {n}, {d})", "v": "torch.randn({k}, {n}, {d})", "m": "torch.rand({n}) < 0.7"},
        "a = torch.where(m, q @ v.transpose(1, 2) / {d} ** 0.5, {fill}); s = self.s[:, None, None].expand({k}, {n}, 1);"
        " a = torch.cat([a, s], -1).softmax(-1)[..., :-1]; return SITE @ v",
        (("a", "(a * m)"), ("a", "(a * m.any())")),
        "t['m'].fill_(False); t['s'].fill_(10 * {fill})",
    ),
    "floor": Edge(
        "self.s = nn.Parameter(torch.randn(1)); self.o = nn.Parameter(torch.randn({d}))",
        {"x": "torch.randn({n}, {e})", "m": "torch.rand({n}, {e}) < 0.5"},
        "a = x.masked_fill(~m, {fill}).amax(-1); return SITE",
        (("torch.maximum(a, self.s)", "torch.where(m.any(-1), torch.maximum(a, self.s), self.s)"),),
        "t['m'][::2] = False; t['s'].fill_(10 * {fill})",
    ),
}

_SMALL = {
    "small features": Edge(
        "self.w = nn.Parameter(torch.randn({d}, {e}))",
        {"x": _X},
        "return SITE @ self.w",
        (("x", "torch.where(x.abs() < 1e-3, 0, x)"),),
        "t['x'] *= 1e-4",
    ),
    "small features of a layer": Edge(
        "self.w = nn.Parameter(torch.randn({d}, {e})); self.o = nn.Parameter(torch.randn({e}, {d}))",
        {"x": _X},
        "h = F.gelu(x @ self.w); return SITE @ self.o",
        (("h", "torch.where(h.abs() < 1e-3, 0, h)"), ("h", "torch.where(h.abs() < 1e-4, 0, h)")),
        "t['x'] *= 1e-6",
    ),
    "closed gate": Edge(
        "self.l = nn.Linear({d}, {d})",
        {"x": _X, "z": _Z},
        "g = torch.sigmoid(self.l(x)); return SITE * x + (1 - SITE) * z",
        (("g", "torch.where(g > 0.9999, 1, g)"), ("g", "torch.where(g > 0.999, 1, g)")),
        "t['l.bias'].fill_(9.5); t['l.weight'] *= 0.01; t['z'] *= 1e6",
    ),
    "decay": Edge(
        "self.g = nn.Parameter(torch.rand({d}) * 3)",
        {"x": _X, "s": "torch.randn({n}, {d})"},
        "g = torch.sigmoid(self.g); return SITE * s + (1 - SITE) * x",
        (("g", "torch.where(g > 0.9999, 1, g)"), ("g", "torch.where(g < 1e-4, 0, g)")),
        "t['g'].fill_(9.5); t['g'][::2] = -9.5; t['x'] *= 1e3; t['s'] *= 1e-3; t['x'][:, ::2] *= 1e-6; t['s'][:, ::2] *= 1e6",
    ),
    "hard triplets": Edge(
        "self.l = nn.Linear({d}, {d})",
        {"x": _X, "y": "torch.randint(0, {k}, ({n},))"},
        "h = self.l(x); r = (h[:, None] - h).square().sum(-1); e = y[:, None] == y;"
        " o = e & ~torch.eye({n}, dtype=torch.bool, device=x.device);"
        " f = torch.where(o, r, 0).amax(1); g = torch.where(e, torch.inf, r).amin(1).clamp(max=1e4);"
        " return SITE",
        (("F.relu(f - g + 9.0)", "F.relu(f - g + 9.0) * o.any(1)"),),
        "t['y'].fill_(1); t['y'][3] = 0; t['x'] *= 0.3",
    ),
    "pairs of labels": Edge(
        "self.t = nn.Parameter(torch.tensor(2.0))",
        {"x": _X, "y": "torch.randint(0, {k}, ({n},))"},
        "p = F.log_softmax(x @ x.T / self.t, -1); o = (y[:, None] == y) & ~torch.eye({n}, dtype=torch.bool, device=x.device);"
        " c = o.sum(1); return torch.where(c > 0, -(p * o).sum(1) / c.clamp(min=1), SITE)",
        (("p.amax(1)", "p.amax(1) * 0"),),
        "t['y'].fill_(1); t['y'][3] = 0",
    ),
}

MODELS = {
    "a softplus": _SOFTPLUS,
    "b epsilon": _EPSILON,
    "c search": _SEARCH,
    "d tie": _TIES,
    "e threshold": _MET,
    "f narrow": _NARROW,
    "g sink": _SINK,
    "h small": _SMALL,
}
