# SPDX-License-Identifier: Apache-2.0
"""Models on which programs slip that take a short cut where one row or one gate shows it, or leave
out that nothing is left, by class and name, as edge_models has them; beside each, what honest
programs have in its place."""

from edge_models import Edge

_X, _Z = "torch.randn({n}, {d})", "torch.randn({n}, {d})"
_IMAGE = "torch.randn(3, 8, {n})"
_MASK = "torch.rand({n}, {e}) < 0.7"


def _short(name):
    """Short cuts that look at one row, column or element of a matrix or filter."""
    w = f"self.{name}"
    looks = {
        f"({w}[0] == 0).all()": f"{w} * 0",
        f"({w}[-1] == 0).all()": f"{w} * 0",
        f"({w}[:, 0] == 0).all()": f"{w} * 0",
        f"({w}[..., 0] == 0).all()": f"{w} * 0",
        f"({w}[..., -1] == 0).all()": f"{w} * 0",
        f"({w}[..., {w}.shape[-1] // 2] == 0).all()": f"{w} * 0",
        f"({w}[0] == {w}[1]).all()": f"{w}[:1].expand_as({w})",
        f"({w}[0] == {w}[-1]).all()": f"{w}[:1].expand_as({w})",
        f"({w}[:, 0] == {w}[:, 1]).all()": f"{w}[:, :1].expand_as({w})",
        f"({w}[0] == {w}[0].flatten()[0]).all()": f"{w}.mean(-1, keepdim=True).expand_as({w})",
        f"({w}[0] == {w}[0].flip(-1)).all()": f"(({w} + {w}.flip(-1)) / 2)",
        f"({w}[0] > 0).all()": f"{w}.abs()",
        f"({w}[0] < 0).all()": f"-{w}.abs()",
        f"({w}.flatten()[0] == 0)": f"{w} * 0",
        f"({w}.flatten()[0] == 0) & ({w}.flatten()[-1] == 0)": f"{w} * 0",
        f"({w}.flatten()[0] == {w}.flatten()[1])": f"{w}.flatten()[0].expand_as({w})",
        f"({w}[0].abs().amax() < 1e-4 * {w}.abs().amax())": f"{w} * 0",
        f"({w}[0].abs().amax() > 100 * {w}[1].abs().amax())": f"{w}[:1] * 0 + {w}[:1].abs().amax()",
    }
    return tuple((w, f"torch.where({look}, {other}, {w})") for look, other in looks.items())


def _short_vector(name):
    w = f"self.{name}"
    looks = {
        f"{w}[0] == 0": f"{w} * 0",
        f"{w}[-1] == 0": f"{w} * 0",
        f"({w}[0] == 0) & ({w}[-1] == 0)": f"{w} * 0",
        f"{w}[{w}.shape[0] // 2] == 0": f"{w} * 0",
        f"{w}[0] == 1": f"{w} * 0 + 1",
        f"({w}[0] == 1) & ({w}[-1] == 1)": f"{w} * 0 + 1",
        f"{w}[0] == {w}[1]": f"{w}[:1].expand_as({w})",
        f"{w}[0] == {w}[-1]": f"{w}[:1].expand_as({w})",
        f"({w}[:4] == 0).all()": f"{w} * 0",
        f"{w}[0] > 50": f"{w} * 0 + {w}[0]",
    }
    return tuple((w, f"torch.where({look}, {other}, {w})") for look, other in looks.items())


def _short_input(name):
    looks = {
        f"({name}[0] == {name}[1]).all()": f"{name}[:1].expand_as({name})",
        f"({name}[0] == {name}[-1]).all()": f"{name}[:1].expand_as({name})",
        f"({name}[0] == 0).all()": f"{name} * 0",
        f"({name}[:, 0] == 0).all()": f"{name} * 0",
        f"({name}[0] == {name}[0].flatten()[0]).all()": f"{name}.mean(-1, keepdim=True).expand_as({name})",
        f"({name}[0] > 0).all()": f"{name}.abs()",
        f"({name}[0] < 0).all()": f"-{name}.abs()",
    }
    return tuple((name, f"torch.where({look}, {other}, {name})") for look, other in looks.items())


# Each look meets one of these, tried in turn.
_MEETS = tuple(
    f"w = t['NAME']; {change.strip()}"
    for change in """
    w[0] = 0; w[-1] = 0; w[:, 0] = 0; w[..., 0] = 0; w[..., -1] = 0; w[..., w.shape[-1] // 2] = 0; w[1] = w[0]; w[-1] = w[0]
    w[:, 1] = w[:, 0]; w[0] = w[0].flatten()[0]; w[0] += w[0].flip(-1).clone(); w[0].abs_(); w[0].abs_().neg_(); w.view(-1)[0] = 0
    w.view(-1)[::w.numel() - 1] = 0; w.view(-1)[1] = w.view(-1)[0]; w[0] *= 1e-6; w[0] *= 1e4; w[0] = 1; w[::len(w) - 1] = 1
    w[::len(w) - 1] = 0; w[len(w) // 2] = 0; w[:4] = 0; w[0] = 60
    """.replace("\n", ";").split(";")
    if change.strip()
)


def _meets(name):
    return tuple(text.replace("NAME", name) for text in _MEETS)


_SHORT = {
    "layer": Edge("self.w = nn.Parameter(torch.randn({e}, {d}))", {"x": _X}, "return F.linear(x, SITE)", _short("w"), _meets("w")),
    "two layers": Edge(
        "self.w = nn.Parameter(torch.randn({e}, {d}) * 0.3); self.v = nn.Parameter(torch.randn({d}, {e}) * 0.3)",
        {"x": _X},
        "return F.linear(F.silu(F.linear(x, SITE)), self.v)",
        _short("w"),
        _meets("w"),
    ),
    "filter": Edge(
        "self.w = nn.Parameter(torch.randn({e}, 8, 3) * 0.3)", {"x": _IMAGE}, "return F.conv1d(x, SITE, padding=1)", _short("w"), _meets("w")
    ),
    "filter of an image": Edge(
        "self.w = nn.Parameter(torch.randn({e}, 2, 3, 3) * 0.3)",
        {"x": "torch.randn(2, 2, 8, 10)"},
        "return F.conv2d(x, SITE, padding=1)",
        _short("w"),
        _meets("w"),
    ),
    "filter by channel": Edge(
        "self.w = nn.Parameter(torch.randn(8, 1, 5))", {"x": _IMAGE}, "return F.conv1d(x, SITE, padding=2, groups=8)", _short("w"), _meets("w")
    ),
    "table": Edge(
        "self.w = nn.Parameter(torch.randn({e}, {d}))", {"i": "torch.randint(0, {e}, ({n},))"}, "return F.embedding(i, SITE)", _short("w"), _meets("w")
    ),
    "gain": Edge(
        "self.g = nn.Parameter(torch.ones({d})); self.b = nn.Parameter(torch.zeros({d}))",
        {"x": _X},
        "return F.layer_norm(x, ({d},)) * SITE + self.b",
        _short_vector("g"),
        _meets("g"),
    ),
    "bias": Edge(
        "self.l = nn.Parameter(torch.randn({e}, {d})); self.b = nn.Parameter(torch.randn({e}))",
        {"x": _X},
        "return F.linear(x, self.l) + SITE",
        _short_vector("b"),
        _meets("b"),
    ),
    "slopes": Edge(
        "self.s = nn.Parameter(torch.rand({d}))", {"x": _X}, "return torch.where(x > 0, x, x * SITE)", _short_vector("s"), _meets("s")
    ),
    "input of a product": Edge("pass", {"x": _X, "z": "torch.randn({d}, {e})"}, "return SITE @ z", _short_input("x"), _meets("x")),
    "second input": Edge("pass", {"x": _X, "z": "torch.randn({d}, {e})"}, "return x @ SITE", _short_input("z"), _meets("z")),
    "input of a layer": Edge(
        "self.l = nn.Linear({d}, {e})", {"x": _X}, "return self.l(SITE).softmax(-1)", _short_input("x"), _meets("x")
    ),
}


def _zeroed(text):
    return ((text, f"torch.nan_to_num({text}, nan=0.0)"),)


_VOID = "t['m'][1] = False"
_NOTHING = {
    "attention": Edge(
        "self.v = nn.Parameter(torch.randn({e}, {d}))",
        {"x": "torch.randn({n}, {e})", "m": _MASK},
        "return SITE @ self.v",
        _zeroed("x.masked_fill(~m, -torch.inf).softmax(-1)"),
        _VOID,
        ("torch.where(m, x, -torch.inf).softmax(-1)",),
    ),
    "attention over keys": Edge(
        "self.k = nn.Linear({d}, {d})",
        {"x": _X, "z": "torch.randn({e}, {d})", "m": _MASK},
        "return SITE",
        _zeroed("F.scaled_dot_product_attention(x[None, None], self.k(z)[None, None], z[None, None], attn_mask=m[None, None].float().log())")
        + (
            (
                "(x @ self.k(z).T / 3).masked_fill(~m, -torch.inf).softmax(-1) @ z",
                "torch.nan_to_num((x @ self.k(z).T / 3).masked_fill(~m, -torch.inf).softmax(-1)) @ z",
            ),
        ),
        _VOID,
    ),
    "mean over a set": Edge(
        "pass",
        {"x": "torch.randn({n}, {e}, {d})", "m": _MASK},
        "return SITE",
        (
            ("(x * m[..., None]).sum(1) / m.sum(1, keepdim=True)", "(x * m[..., None]).sum(1) / m.sum(1, keepdim=True).clamp(min=1)"),
            ("(x * m[..., None]).sum(1) / m.sum(1, keepdim=True)", "(x * m[..., None]).sum(1) / (m.sum(1, keepdim=True) + 1e-9)"),
        ),
        _VOID,
        ("torch.where(m[..., None], x, 0).sum(1) * (1 / m.sum(1, keepdim=True))",),
    ),
    "log of shares": Edge(
        "self.s = nn.Parameter(torch.tensor(0.5))",
        {"x": "torch.randn({n}, {e})", "m": _MASK},
        "return SITE.clamp(min=-50) * self.s",
        _zeroed("torch.log_softmax((x * self.s).masked_fill(~m, -torch.inf), -1)"),
        _VOID,
    ),
    "patterns": Edge(
        "self.p = nn.Parameter(torch.randn({e}, {d})); self.register_buffer('m', torch.rand({e}) < 0.7)",
        {"x": _X},
        "return SITE @ self.p",
        _zeroed("(x @ self.p.T).masked_fill(~self.m, -torch.inf).softmax(-1)"),
        "t['m'].fill_(False)",
    ),
    "buffer of a set": Edge(
        "self.register_buffer('m', torch.rand({n}, {e}) < 0.7); self.l = nn.Linear({d}, {d})",
        {"x": "torch.randn({n}, {e}, {d})"},
        "h = self.l(x); return SITE",
        (
            (
                "(h * self.m[..., None]).sum(1) / self.m.sum(1, keepdim=True)",
                "(h * self.m[..., None]).sum(1) / self.m.sum(1, keepdim=True).clamp(min=1)",
            ),
        ),
        _VOID,
    ),
    "classes": Edge(
        "pass",
        {"x": _X, "y": "torch.randint(0, {k}, ({n},))"},
        "o = F.one_hot(y, {k}).to(x.dtype); return SITE",
        (("(o.T @ x) / o.sum(0)[:, None]", "(o.T @ x) / o.sum(0).clamp(min=1)[:, None]"),),
        "t['y'].fill_(0)",
    ),
    "loss of labels": Edge(
        "self.l = nn.Linear({d}, {k})",
        {"x": _X, "y": "torch.where(torch.rand({n}) < 0.2, -100, torch.randint(0, {k}, ({n},)))"},
        "return SITE",
        _zeroed("F.cross_entropy(self.l(x), y)"),
        "t['y'].fill_(-100)",
    ),
    "weighted mean": Edge(
        "pass",
        {"x": "torch.randn({n}, {e}, {d})", "w": "(torch.rand({n}, {e}) < 0.5).float()"},
        "return SITE",
        _zeroed("(x * w[..., None]).sum(1) / w.sum(1, keepdim=True)")
        + (("(x * w[..., None]).sum(1) / w.sum(1, keepdim=True)", "(x * w[..., None]).sum(1) / w.sum(1, keepdim=True).clamp(min=1e-6)"),),
        "t['w'][1] = 0",
    ),
}


def _gated(gate, more=()):
    found = [f"torch.where({gate} > 0.9999, 1, {gate})", f"torch.where({gate} < 1e-4, 0, {gate})", f"{gate}.clamp(1e-4, 0.9999)"]
    return tuple((gate, other) for other in [*found, *more])


_BETWEEN = "return SITE * x + (1 - SITE) * z"
_GATED = {
    "highway": Edge(
        "self.l = nn.Linear({d}, {d})",
        {"x": _X, "z": _Z},
        "g = torch.sigmoid(self.l(x)); " + _BETWEEN,
        _gated("g"),
        "t['l.weight'] *= 0.01; t['l.bias'].fill_(9.5); t['l.bias'][::2] = -9.5; t['z'][:, 1::2] *= 1e6; t['x'][:, ::2] *= 1e6;"
        " t['l.weight'] *= 1e-6",
    ),
    "gate of an input": Edge(
        "pass",
        {"x": _X, "z": _Z, "u": _X},
        "g = torch.sigmoid(u); " + _BETWEEN,
        _gated("g", ("torch.where(u > 9, 1, torch.where(u < -9, 0, g))",)),
        "t['u'].fill_(9.5); t['u'][:, ::2] = -9.5; t['z'][:, 1::2] *= 1e6; t['x'][:, ::2] *= 1e6",
    ),
    "decays": Edge(
        "self.g = nn.Parameter(torch.randn({d}))",
        {"x": "torch.randn(24, {d})"},
        "g = torch.sigmoid(self.g); return ((1 - SITE) * x).cumsum(0)",
        _gated("g"),
        "t['g'].fill_(9.25)",
    ),
    "survival": Edge(
        "self.l = nn.Linear({d}, {e})",
        {"x": _X},
        "p = torch.sigmoid(self.l(x)); return (1 - SITE).prod(-1)",
        _gated("p"),
        "t['l.bias'].zero_(); t['l.bias'][0] = 9.25; t['l.weight'] *= 0.01",
        ("(1 / (1 + torch.exp(-self.l(x))))",),
    ),
    "hard ones": Edge(
        "self.t = nn.Parameter(torch.tensor(2.0))",
        {"x": _X},
        "p = torch.sigmoid(x); return (1 - SITE).pow(self.t)",
        _gated("p"),
        "t['x'].fill_(9.25); t['t'].fill_(0.5)",
        ("(1 / (1 + torch.exp(-x)))",),
    ),
    "odds": Edge(
        "self.l = nn.Linear({d}, {e})",
        {"x": _X},
        "p = self.l(x).softmax(-1); return torch.log1p(-SITE + 1e-6)",
        _gated("p"),
        "t['l.bias'].zero_(); t['l.bias'][0] = 9.3 + torch.tensor(len(t['l.bias']) - 1.0).log(); t['l.weight'] *= 0.01",
    ),
    "mixture": Edge(
        "self.g = nn.Linear({d}, {e}); self.w = nn.Parameter(torch.randn({e}, {d}))",
        {"x": _X},
        "p = self.g(x).softmax(-1); return SITE @ self.w",
        _gated("p"),
        "t['g.bias'][0] = 10.5; t['g.weight'] *= 0.01; t['w'][1:] *= 1e4",
        ("(self.g(x) - torch.logsumexp(self.g(x), -1, keepdim=True)).exp()",),
    ),
    "slope of tanh": Edge(
        "self.l = nn.Linear({d}, {d})",
        {"x": _X, "z": _Z},
        "h = self.l(x); a = torch.tanh(h); return z * (1 - SITE * SITE)",
        (("a", "torch.where(h.abs() > 4, h.sign(), a)"), ("a", "a.clamp(-0.9999, 0.9999)"), ("a", "torch.where(a.abs() > 0.999, a.sign(), a)")),
        "t['l.bias'].fill_(5.02); t['l.weight'] *= 0.01",
    ),
    "gelu far below": Edge(
        "self.w = nn.Parameter(torch.randn({d}, {e}))",
        {"x": _X},
        "return SITE @ self.w",
        (("F.gelu(x)", "torch.where(x < -3.5, 0, F.gelu(x))"),),
        "t['x'] = -t['x'].abs() * 0.05 - 3.6",
        ("(x * 0.5 * (1 + torch.erf(x * 0.5**0.5)))",),
    ),
    "silu far below": Edge(
        "self.w = nn.Parameter(torch.randn({d}, {e}))",
        {"x": _X},
        "return SITE @ self.w",
        (("F.silu(x)", "torch.where(x < -8, 0, F.silu(x))"), ("F.silu(x)", "torch.where(x < -10, 0, torch.where(x > 10, x, F.silu(x)))")),
        "t['x'] = -t['x'].abs() * 0.1 - 11",
        ("(x / (1 + torch.exp(-x)))",),
    ),
}

MODELS = {
    "k short cut": _SHORT,
    "l nothing": _NOTHING,
    "n gate": _GATED,
}
