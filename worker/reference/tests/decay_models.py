# SPDX-License-Identifier: Apache-2.0
"""Recurrences by learned decays, by class and name, as edge_models has them, and programs that lose
what is carried: exponents that are cut off, quotients of products, chunks that carry nothing where
they decay by much."""

from edge_models import Edge

_T = 16
_X, _ROWS = f"torch.randn({{n}}, {_T}, {{d}})", f"torch.randn({{n}}, {_T})"
# In each body: from a logarithm q of gates and summands u the states.
_HELP = f"""
        def states(q, u, h):
            return torch.stack([h := torch.exp(q[:, j]) * h + u[:, j] for j in range(q.shape[1])], 1)
        def between(q, u):
            s = q.cumsum(1)
            return torch.stack([(torch.exp(s[:, j : j + 1] - s[:, : j + 1]) * u[:, : j + 1]).sum(1) for j in range({_T})], 1)
        def factored(q, u, low):
            s = q.cumsum(1)
            return torch.exp(s) * (u * torch.exp((-s).clamp(max=-low))).cumsum(1)
        def chunked(q, u, h, size, is_carried):
            found = []
            for b in range(0, {_T}, size):
                r, v = q[:, b : b + size], u[:, b : b + size]
                s = r.cumsum(1)
                own = states(r, v, h * 0)
                found.append(own + torch.where(is_carried(r, s), torch.exp(r).cumprod(1) * h[:, None], 0))
                h = found[-1][:, -1]
            return torch.cat(found, 1)
        """
_H = "u[:, 0] * 0"
_RIGHT = f"states(q, u, {_H})"
_WRONGS = (
    f"states(q.clamp(min=-15), u, {_H})",
    f"states(torch.where(q < -15, -1e4, q), u, {_H})",
    f"states(torch.where(q < -9, -1e4, q), u, {_H})",
    "between(q, u)",
    "factored(q, u, -80)",
    "factored(q, u, -60)",
    f"chunked(q, u, {_H}, 4, lambda r, s: s[:, -1:] > -20)",
    f"chunked(q, u, {_H}, 4, lambda r, s: s > -14)",
    f"chunked(q, u, {_H}, 8, lambda r, s: r.amin(1, keepdim=True) > -12)",
)
_SITES = tuple((_RIGHT, wrong) for wrong in _WRONGS)
_ALIKE = (f"chunked(q, u, {_H}, 4, lambda r, s: s == s)", f"chunked(q, u, {_H}, 8, lambda r, s: s < 1)")


def _of(init, inputs, before, after, witness, sites=_SITES, alike=_ALIKE):
    return Edge(init, inputs, f"{_HELP}{before}; return {after}", sites, witness, alike)


def _far(size, *changes):
    """Changes after which what comes first is large."""
    return tuple(f"{change}; t['x'][:, :{end}] *= {size}" for change in changes for end in (3, 5))


_DECAYS = {
    "steps of time": _of(
        "self.a = nn.Parameter(torch.zeros({d}))",
        {"x": _X, "z": f"torch.rand({{n}}, {_T}, 1)"},
        "q, u = -z.abs() * self.a.exp(), x",
        "torch.atan(SITE)",
        (*_far(1e9, "t['z'][:, 5] = 16"), *_far(1e6, "t['z'][:, 5] = 10"), *_far(1e30, "t['z'][:] = 6", "t['z'][:] = 12")),
    ),
    "selective": _of(
        "self.l = nn.Linear({d}, {d}); self.a = nn.Parameter(torch.zeros({d})); self.b = nn.Parameter(torch.randn({d}))",
        {"x": _X},
        "s = F.softplus(self.l(x)); q, u = -s * self.a.exp(), s * x * self.b",
        "SITE[:, -1] * self.b",
        ("t['l.weight'] *= 0; t['l.bias'].fill_(1.0); t['x'][:, 10] *= 1e10; t['a'] += 0.5", "t['l.weight'] *= 0; t['a'].fill_(2.8); t['x'][:, -2] *= 1e8", "t['l.weight'] *= 0; t['a'].fill_(2.8); t['x'][:, 11] *= 1e25"),
    ),
    "gated attention": _of(
        "self.g = nn.Linear({d}, {d})",
        {"x": _X, "z": _X},
        "q, u = F.logsigmoid(self.g(x) + 2), x * z",
        "torch.atan(SITE)",
        ("t['g.bias'] -= 14; t['z'][:, :4] *= 1e8; t['g.weight'] *= 1e-3", "t['g.bias'] -= 9; t['z'][:, :4] *= 1e8; t['g.weight'] *= 1e-3", "t['g.bias'] -= 19; t['z'][:, :4] *= 1e12; t['g.weight'] *= 1e-3", "t['g.weight'] *= 30"),
    ),
    "one decay": _of(
        "self.a = nn.Parameter(torch.tensor(-0.3))",
        {"x": _ROWS},
        "q, u = -self.a.exp().expand({n}, 16), x",
        "SITE[:, 5:]",
        tuple(f"t['a'].fill_({a}); t['x'][:, :{end}] *= {size}" for a in (2.35, 2.5, 2.75, 2.8, 1.8) for end in (5, 3, 12) for size in (1e9, 1e20)),
    ),
    "kept state": _of(
        "self.l = nn.Linear({d}, {d})",
        {"x": _X, "s": "torch.zeros({n}, {d})"},
        "q, u = F.logsigmoid(self.l(x)), x",
        "SITE",
        ("t['s'] += 1e9; t['l.weight'] *= 1e-3; t['l.bias'] -= 15.5", "t['s'] += 1e6; t['l.weight'] *= 1e-3; t['l.bias'] -= 10"),
        tuple(("states(q, u, s)", f"states({q}, u, s)") for q in ("q.clamp(min=-8)", "torch.where(q < -15, -1e4, q)", "torch.where(q < -9, -1e4, q)")),
        ("chunked(q, u, s, 4, lambda r, s: s == s)",),
    ),
}


def _cell(forget):
    return f"(lambda c: torch.stack([c := {forget} + torch.sigmoid(i[:, j]) * torch.tanh(g[:, j]) for j in range({_T})], 1))(s)"


_ALL = _cell("torch.sigmoid(f[:, j]) * c")
_CELLS = {
    "cell": Edge(
        "self.l = nn.Linear({d}, 3 * {d})",
        {"x": _X, "s": "torch.randn({n}, {d})"},
        "f, i, g = self.l(x).chunk(3, -1); return SITE[:, :4]",
        ((_ALL, _cell("torch.where(f[:, j] < -9, 0, torch.sigmoid(f[:, j]) * c)")), (_ALL, _cell("torch.sigmoid(f[:, j]) * c.clamp(-100, 100)"))),
        ("t['l.bias'] += 20; t['s'] *= 1e4", "t['l.bias'][:{d}] -= 9.5; t['s'].fill_(1e8); t['l.weight'] *= 1e-3"),
    ),
    "unit": Edge(
        "self.l = nn.Linear({d}, {d})",
        {"x": _X, "z": _X, "s": "torch.randn({n}, {d})"},
        "z = torch.sigmoid(z + self.l(x) * 0.1); return SITE",
        tuple(
            (f"(lambda h: torch.stack([h := (1 - z[:, j]) * h + z[:, j] * torch.tanh(x[:, j]) for j in range({_T})], 1)[:, 2:])(s)", f"(lambda h: torch.stack([h := torch.where(z[:, j] > {most}, torch.tanh(x[:, j]), (1 - z[:, j]) * h + z[:, j] * torch.tanh(x[:, j])) for j in range({_T})], 1)[:, 2:])(s)")
            for most in (0.999, 0.9999)
        ),
        ("t['s'] *= 1e8; t['z'][:, 2] = 8; t['l.weight'] *= 0", "t['s'] *= 1e8; t['z'][:, 2] = 10; t['l.weight'] *= 0"),
    ),
    "largest": Edge(
        "pass",
        {"x": _X, "g": _X.replace("randn", "rand")},
        "return SITE",
        tuple((f"(lambda h: torch.stack([h := torch.maximum(h - g[:, j], x[:, j]) for j in range({_T})], 1))(x[:, 0])", f"(lambda h: torch.stack([h := torch.maximum({other}, x[:, j]) for j in range({_T})], 1))(x[:, 0])") for other in ("torch.where(g[:, j] > 50, x[:, j], h - g[:, j])", "h - g[:, j].clamp(0, 1)")),
        ("t['g'][:, 5] = 60; t['x'][:, 3] = 1000", "t['g'] *= -1"),
    ),
    "flags": Edge(
        "pass",
        {"x": _X, "f": f"(torch.rand({{n}}, {_T}, 1) < 0.3).float()"},
        "return SITE",
        tuple((f"(lambda h: torch.stack([h := (1 - f[:, j]) * h + x[:, j] for j in range({_T})], 1))(x[:, 0])", f"(lambda h: torch.stack([h := {other} for j in range({_T})], 1))(x[:, 0])") for other in ("torch.where(f[:, j] > 0, 0, h) + x[:, j]",)),
        ("t['f'][:, 5] = 0.5",),
    ),
}
MODELS = {"M decays": _DECAYS, "N cells": _CELLS}
