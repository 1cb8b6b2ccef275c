# SPDX-License-Identifier: Apache-2.0
"""Models that follow something as far as it goes, or keep all that may be needed further on, by
class and name, as edge_models has them, and programs that go a few steps, or keep the best few or
what lies in a band."""

from edge_models import Edge


def _rounds(step, start, count):
    return f"(lambda d: [d := {step} for _ in range({count})][-1])({start})"


_PAIRS = "torch.randint(0, 16, (2, 40))"
_EDGES = "a = torch.zeros(16, 16, dtype=torch.bool); a[e[0], e[1]] = True; a = a | a.T | torch.eye(16, dtype=torch.bool);"
_LEAST = "torch.where(a, d, 99).amin(-1)"
_REACHED = "((d @ a.to(d.dtype)) > 0).to(self.v.dtype)"
_RELAXED = "(d[:, :, None] + x).amin(1)"


def _beam(step, most, last):
    """Of each step all states, or the best few."""
    right = f"(lambda h: [h := {step} for j in range(12)][-1])(x[:, 0])"
    kept = f"torch.where(h >= h.topk({most}, -1).values[:, -1:], h, -1e9)"
    wrong = f"(lambda h: [h := (lambda h: {step})({kept}) for j in range(12)][-1])(x[:, 0])"
    return ((f"{right}{last}", f"{wrong}{last}"),)


# A dynamic program along the diagonals of 10 x 10 costs c, of which a program knows a band.
_ALIGNED = """
        def aligned(c, band, far):
            rows = [[None] * 10 for _ in range(10)]
            for i in range(10):
                for j in range(10):
                    if abs(i - j) > band:
                        rows[i][j] = c[:, 0, 0] * 0 + far
                        continue
                    before = [rows[p][q] for p, q in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if p >= 0 and q >= 0]
                    rows[i][j] = c[:, i, j] + (torch.stack(before).amin(0) if before else 0)
            return rows[9][9]
        """
_FOLLOWED = {
    "jumps": Edge(
        "self.v = nn.Parameter(torch.randn(40, {d}))",
        {"i": "torch.randint(0, 40, (40,))"},
        "q = torch.minimum(i, torch.arange(40)); f = lambda r: r[r]; return self.v[SITE]",
        (("f(f(f(f(f(f(q))))))", "f(f(f(f(q))))"), ("f(f(f(f(f(f(q))))))", "f(f(f(f(f(q)))))")),
        "t['i'] = (torch.arange(40) - 1).clamp(min=0)",
    ),
    "depths of a tree": Edge(
        "self.v = nn.Parameter(torch.randn(40, {d}))",
        {"i": "torch.randint(0, 40, (40,))"},
        "q = torch.minimum(i, (torch.arange(40) - 1).clamp(min=0)); return self.v[SITE]",
        (
            (
                "(lambda p, s: [(s := s + (p > 0), p := q[p]) for _ in range(40)][-1][0])(torch.arange(40), q * 0)",
                "(lambda p, s: [(s := s + (p > 0), p := q[p]) for _ in range(16)][-1][0])(torch.arange(40), q * 0)",
            ),
        ),
        "t['i'] = (torch.arange(40) - 1).clamp(min=0)",
    ),
    "components": Edge(
        "self.v = nn.Parameter(torch.randn(16, {d}))",
        {"e": _PAIRS},
        _EDGES + " s = torch.arange(16); return self.v[SITE]",
        tuple((_rounds(_LEAST, "s", 16), _rounds(_LEAST, "s", count)) for count in (6, 8)),
        "t['e'][:] = torch.stack([torch.arange(40) % 15, torch.arange(40) % 15 + 1])",
    ),
    "reached": Edge(
        "self.v = nn.Parameter(torch.randn(16, {d}))",
        {"e": _PAIRS, "i": "torch.randint(0, 16, (8,))"},
        _EDGES + " s = F.one_hot(i, 16).float(); return SITE @ self.v",
        tuple((_rounds(_REACHED, "s.to(self.v.dtype)", 16), _rounds(_REACHED, "s.to(self.v.dtype)", count)) for count in (6, 8)),
        "t['e'][:] = torch.stack([torch.arange(40) % 15, torch.arange(40) % 15 + 1]); t['i'].fill_(0)",
    ),
}
_KEPT = {
    "best path": Edge(
        "self.a = nn.Parameter(torch.randn({e}, {e}) * 0.1)",
        {"x": "torch.randn({n}, 12, {e}) * 3"},
        "return SITE",
        _beam("(h[:, :, None] + self.a).amax(1) + x[:, j]", 4, ".amax(-1)"),
        "t['x'] *= 0.01; t['a'] *= 100",
    ),
    "all paths": Edge(
        "self.a = nn.Parameter(torch.randn({e}, {e}) * 0.1)",
        {"x": "torch.randn({n}, 12, {e}) * 5"},
        "return SITE",
        _beam("torch.logsumexp(h[:, :, None] + self.a, 1) + x[:, j]", 5, ".logsumexp(-1)"),
        "t['x'] *= 0.001",
    ),
    "attention": Edge(
        "self.l = nn.Linear({d}, {d})",
        {"x": "torch.randn({n}, {d}) * 3", "z": "torch.randn(32, {d}) * 3"},
        "s = x @ z.T; return SITE @ self.l(z)",
        (("torch.softmax(s, -1)", "torch.softmax(torch.where(s >= s.topk(16, -1).values[:, -1:], s, -1e9), -1)"),),
        "t['x'] *= 0.001",
    ),
    "mixture": Edge(
        "self.c = nn.Parameter(torch.randn(32, {d}) * 3)",
        {"x": "torch.randn({n}, {d}) * 3"},
        "s = -(x[:, None] - self.c).square().sum(-1); return SITE",
        (("torch.logsumexp(s, -1)", "torch.logsumexp(s.topk(12, -1).values, -1)"),),
        "t['c'] *= 0.001; t['x'] *= 0.001",
    ),
    "warped": Edge(
        "pass",
        {"x": "torch.arange(10) + torch.rand({n}, 10)", "z": "torch.arange(10) + torch.rand({n}, 10)"},
        _ALIGNED + "c = (x[:, :, None] - z[:, None]).abs(); return SITE",
        (("aligned(c, 10, 0)", "aligned(c, 4, 1e30)"),),
        "t['x'][:] = 0; t['x'][:, 7:] = 50; t['z'][:] = 0; t['z'][:, 1:] = 50",
    ),
}
# Only one structure of a whole tensor shows these.
_PATHS = {
    "shortest paths": Edge(
        "pass",
        {"x": "torch.rand(12, 12)"},
        "x = x.abs() * (1 - torch.eye(12)); return SITE",
        tuple((_rounds(_RELAXED, "x", 11), _rounds(_RELAXED, "x", count)) for count in (5, 6)),
        "t['x'] = torch.full((12, 12), 100.0); t['x'][torch.arange(11), torch.arange(1, 12)] = 0.1",
    ),
    "edited": Edge(
        "pass",
        {"i": "torch.arange(10) + torch.randint(0, 2, ({n}, 10))", "k": "torch.arange(10) + torch.randint(0, 2, ({n}, 10))", "z": "torch.randn({n}, {d})"},
        _ALIGNED + "c = (i[:, :, None] != k[:, None]).to(z.dtype); return SITE[:, None] * z",
        (("aligned(c, 10, 0)", "aligned(c, 4, 1e30)"),),
        "t['i'][:] = 0; t['i'][:, 8:] = 5; t['k'][:] = 0; t['k'][:, 1:] = 5",
    ),
}
MODELS = {"K chains": _FOLLOWED, "L kept": _KEPT, "P paths": _PATHS}
OPEN = frozenset({"P paths"})
