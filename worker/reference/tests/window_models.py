# SPDX-License-Identifier: Apache-2.0
"""Models that search, scan or add over all of a row, by class and name, as edge_models has them, and
programs that look at a window of it, a few of the nearest, or the last entries of a stack: no more
was ever needed of public inputs."""

from edge_models import Edge

_T = 64
_ROWS, _MASK = f"torch.randn({{n}}, {_T})", f"torch.rand({{n}}, {_T}) < 0.5"
_PLACES = f"j = torch.arange({_T}); "
_TIMES = f"(torch.rand({_T}) * 2).cumsum(0)"
_VALUES = f"self.v = nn.Parameter(torch.randn({_T}, {{d}}))"


def _within(right, most):
    """(what holds of pairs of places, the same of those that are near)"""
    return ((right, f"({right} & ((j[:, None] - j).abs() <= {most}))"),)


_LAST = "torch.where(m, j, -1).cummax(-1).values"
_SAME = "((i[..., None] == i[:, None]) & (j[:, None] > j))"
_ABOVE = "((x[:, None] > x[..., None]) & (j > j[:, None]))"
_OPEN = (
    _PLACES + "d = (2 * b - 1).cumsum(-1); c = torch.where(j >= j[:, None], d[:, None], 1000).cummin(-1).values;"
    " o = (c >= d[..., None]) & (j >= j[:, None]) & (b[..., None] > 0);"
)
_DECAY = "(a[:, None, None] ** (j[:, None] - j).clamp(min=0) * (j[:, None] >= j))"
_NEAREST = "(x[:, None] - z).abs()"
_SEARCHES = {
    "last event": Edge(
        "pass",
        {"m": _MASK, "x": _ROWS},
        _PLACES + "s = SITE; return torch.where(s >= 0, x.gather(1, s.clamp(min=0)), 0)",
        ((_LAST, f"(lambda s: torch.where(j - s < 24, s, -1))({_LAST})"),),
        "t['m'][1] = False; t['m'][1, 0] = True",
    ),
    "last of the same": Edge(
        "pass",
        {"i": f"torch.randint(0, 4, ({{n}}, {_T}))", "x": _ROWS},
        _PLACES + "s = (SITE * (j + 1)).amax(-1); return torch.where(s > 0, x.gather(1, (s - 1).clamp(min=0)), x)",
        _within(_SAME, 44),
        "t['i'][1] = 1; t['i'][1, 0] = 0; t['i'][1, -1] = 0",
    ),
    "next that is larger": Edge(
        "pass",
        {"x": f"torch.randn({{n}}, {_T}) + torch.arange({_T}) * 0.5"},
        _PLACES + f"s = torch.where(SITE, j, {_T}).amin(-1); return torch.where(s < {_T}, x.gather(1, s.clamp(max={_T - 1})), 0)",
        _within(_ABOVE, 24),
        f"t['x'][1] = -torch.arange({_T}); t['x'][1, -1] = 1",
    ),
    "nearest of a grid": Edge(
        _VALUES,
        {"x": _TIMES, "z": f"torch.arange({_T}) + 0.2 * torch.rand({_T})"},
        _PLACES + "return self.v[SITE]",
        ((f"{_NEAREST}.argmin(-1)", f"torch.where((j[:, None] - j).abs() <= 24, {_NEAREST}, 1e30).argmin(-1)"),),
        "t['x'] = t['x'].flip(0)",
        ("(z - x[:, None]).abs().argmin(-1)",),
    ),
    "nearest of learned ones": Edge(
        f"self.g = nn.Parameter(torch.arange({_T}) + 0.2 * torch.rand({_T}))",
        {"x": f"torch.arange({_T}) + torch.rand({_T})"},
        _PLACES + "return SITE",
        tuple(
            ("(x[:, None] - self.g).abs().amin(-1)", f"torch.where((j[:, None] - j).abs() <= {w}, (x[:, None] - self.g).abs(), 1e30).amin(-1)")
            for w in (4, 8)
        ),
        "t['x'] = t['x'].flip(0)",
    ),
    "latest before": Edge(
        "pass",
        {"x": f"torch.arange({_T}) + 2 + torch.rand({_T})", "z": f"torch.arange({_T}) + torch.rand({_T})"},
        _PLACES + "return torch.where(SITE, z, -1e3).amax(-1)",
        _within("(z <= x[:, None])", 8),
        "t['x'] = t['x'].flip(0)",
    ),
    "interval of a spline": Edge(
        "self.w = nn.Parameter(torch.randn(32) * 0.1); self.v = nn.Parameter(torch.randn(32))",
        {"x": "torch.rand({n}, {d})"},
        "j = torch.arange(32); r = torch.softmax(self.w, -1).cumsum(-1); return self.v[SITE.clamp(max=31)] * x",
        (
            (
                "(x[..., None] > r).sum(-1)",
                "(lambda g: torch.where((j - g).abs() <= 6, x[..., None] > r, j < g).sum(-1))((x[..., None] * 32).long())",
            ),
        ),
        ("t['w'][0] += 5", "t['w'][-1] += 5"),
    ),
}
_SUMS = {
    "suppressed": Edge(
        "pass",
        {"x": _TIMES, "z": f"torch.randn({_T}, {{d}})"},
        _PLACES + "return torch.where(SITE.any(-1)[:, None], 0, z)",
        _within("(((x[:, None] - x).abs() < 1) & (j[:, None] > j))", 20),
        "t['x'][-1] = t['x'][0] + 0.1",
    ),
    "within reach": Edge(
        "pass",
        {"x": _TIMES, "z": f"torch.randn({_T}, {{d}})"},
        _PLACES + "return SITE.to(z.dtype) @ z",
        _within("((x[:, None] - x).abs() < 1)", 20),
        ("t['x'] *= 0.01", "t['x'][-1] = t['x'][0] + 0.1"),
    ),
    "kernels": Edge(
        "pass",
        {"x": f"torch.arange({_T}) * 2 + torch.rand({_T})", "z": f"torch.randn({_T}, {{d}})"},
        _PLACES + "return SITE @ z",
        (("torch.exp(-(x[:, None] - x).square())", "(torch.exp(-(x[:, None] - x).square()) * ((j[:, None] - j).abs() <= {e}))"),),
        "t['x'] *= 0.01",
    ),
    "ball": Edge(
        "pass",
        {"x": "torch.randn(40, 3) * 3", "z": "torch.randn(40, {d})"},
        "q = (x[:, None] - x).square().sum(-1); return SITE @ z",
        (("(q < 1).to(x.dtype)", "(torch.zeros_like(q).scatter(1, q.topk({e} + 8, -1, largest=False).indices, 1.0) * (q < 1))"),),
        "t['x'] *= 0.01",
    ),
    "open brackets": Edge(
        "pass",
        {"b": f"torch.randint(0, 2, ({{n}}, {_T}))", "x": _ROWS},
        _OPEN + " return (SITE * x[..., None]).sum(1)",
        (("o", "(o & (o.flip(1).cumsum(1).flip(1) <= 30))"),),
        "t['b'][1] = 1",
    ),
    "bottom of a stack": Edge(
        "pass",
        {"b": f"torch.randint(0, 2, ({{n}}, {_T}))", "x": _ROWS},
        _OPEN + " s = torch.where(SITE, j[:, None], 64).amin(1); return torch.where(s < 64, x.gather(1, s.clamp(max=63)), 0)",
        (("o", "(o & (o.flip(1).cumsum(1).flip(1) <= 30))"),),
        "t['b'][1] = 1",
    ),
    "depths": Edge(
        "self.v = nn.Parameter(torch.randn(65, {d}))",
        {"b": f"torch.randint(0, 2, ({{n}}, {_T}))"},
        "return self.v[SITE]",
        (("(2 * b - 1).cumsum(-1).abs()", "(2 * b - 1).cumsum(-1).abs().clamp(max=40)"),),
        "t['b'][1] = 1",
    ),
    "decays": Edge(
        "self.a = nn.Parameter(torch.randn({d}) * 0.5 - 1)",
        {"x": f"torch.randn({{n}}, {_T}, {{d}})"},
        _PLACES + "a = torch.sigmoid(self.a); return torch.einsum('dij,njd->nid', SITE, x)",
        ((_DECAY, f"({_DECAY} * (j[:, None] - j < 40))"),),
        "t['a'] += 6",
    ),
    "slopes": Edge(
        "self.s = nn.Parameter(torch.ones({d}))",
        {"x": f"torch.randn({_T}, {{d}})"},
        _PLACES + "return torch.einsum('dij,jd->id', torch.softmax(-self.s[:, None, None].abs() * (j[:, None] - j).abs().float() + torch.where(SITE, 0, -1e9), -1), x)",
        _within("(j[:, None] >= j)", 40),
        "t['s'].fill_(0.01)",
    ),
    "runs": Edge(
        "pass",
        {"m": f"torch.rand({{n}}, {_T}) < 0.6", "x": _ROWS},
        _PLACES + "return SITE * x",
        (("(j - torch.where(m, -1, j).cummax(-1).values)", "(j - torch.where(m, -1, j).cummax(-1).values).clamp(max=30)"),),
        "t['m'][1] = True",
    ),
    "largest so far": Edge(
        "pass",
        {"x": f"torch.randn({{n}}, {_T}) + torch.arange({_T}) * 0.3"},
        "return SITE",
        (("x.cummax(-1).values", f"torch.stack([x[:, max(0, i - 31) : i + 1].amax(-1) for i in range({_T})], -1)"),),
        f"t['x'][1] = -torch.arange({_T})",
    ),
}
MODELS = {"A window": _SEARCHES, "B reach": _SUMS}
