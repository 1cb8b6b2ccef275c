# SPDX-License-Identifier: Apache-2.0
"""Squared distances of which a softmax or the like is taken, by class and name, as edge_models has
them, and programs that expand these: what two points have in common is lost where both are far
from zero and next to each other."""

from edge_models import Edge

_X, _Z = "torch.randn({n}, {d})", "torch.randn({e}, {d})"
_CODES = "self.c = nn.Parameter(torch.randn({e}, {d}))"
_RIGHT = "(x[:, None] - C).square().sum(-1)"
_EXPANDED = "(x.square().sum(-1, keepdim=True) - 2 * x @ C.T + C.square().sum(-1))"
# Without what all of a row have in common.
_WITHOUT = "(C.square().sum(-1) - 2 * x @ C.T)"
_WITNESS = (
    "t['x'] += 3000; t['C'] += 3000",
    "t['x'] += 300; t['C'] += 300",
    "t['x'] += 100; t['C'] = t['C'] * 0.1 + 100",
    "t['x'] = t['x'] * 1e-2 + 1000; t['C'] = t['C'] * 1e-2 + 1000",
)
_ALIKE = ("sum((x[:, None, i] - C[:, i]).square() for i in range({d}))", "(C - x[:, None]).pow(2).flip(-1).sum(-1)", "torch.cdist(x, C, compute_mode='donot_use_mm_for_euclid_dist').square()")


def _of(body, init=_CODES, c="self.c", inputs=None, is_shifted=True, x="x"):
    """`is_shifted` tells that what a row has in common does not count."""
    name = c.rpartition(".")[2]

    def named(text):
        return text.replace("C", c)

    wrongs = [_EXPANDED, _EXPANDED + ".clamp(min=0)", *[_WITHOUT] * is_shifted]
    sites = tuple((named(_RIGHT), named(wrong)) for wrong in wrongs)
    witness = tuple(text.replace("C", name).replace("t['x']", f"t['{x}']") for text in _WITNESS)
    return Edge(init, inputs or {"x": _X}, body, sites, witness, tuple(map(named, _ALIKE)))


_SETS = {"init": "pass", "c": "z", "inputs": {"x": _X, "z": _Z}}
_LABELS = "torch.randint(0, {e}, ({n},))"
_MODELS = {
    "logarithms": _of("return torch.log_softmax(-SITE, -1)"),
    "halves": _of("return torch.log_softmax(-SITE / 2, -1)"),
    "probabilities": _of("return torch.softmax(-SITE, -1)"),
    "with a temperature": _of("return torch.log_softmax(-SITE / self.t.abs(), -1)", _CODES + "; self.t = nn.Parameter(torch.tensor(2.0))"),
    "with widths": _of("return torch.log_softmax(-SITE * self.s.exp() + self.b, -1)", _CODES + "; self.s = nn.Parameter(torch.zeros({e})); self.b = nn.Parameter(torch.zeros({e}))", is_shifted=False),
    "mixture": _of("return torch.logsumexp(self.b.log_softmax(0) - SITE / 2, -1)", _CODES + "; self.b = nn.Parameter(torch.zeros({e}))", is_shifted=False),
    "loss": _of("return F.cross_entropy(-SITE, i)", inputs={"x": _X, "i": _LABELS}),
    "losses": _of("return F.cross_entropy(-SITE, i, reduction='none')", inputs={"x": _X, "i": _LABELS}),
    "episode": _of("return F.cross_entropy(-SITE, i)", "pass", "z", {"x": _X, "z": _Z, "i": _LABELS}),
    "prototypes": _of("return torch.log_softmax(-SITE, -1)", **_SETS),
    "attention": _of("return torch.softmax(-SITE, -1) @ y", "pass", "z", {"x": _X, "z": _Z, "y": _Z}),
    "codes": _of("return torch.softmax(-SITE, -1) @ self.v", _CODES + "; self.v = nn.Parameter(torch.randn({e}, {d}))"),
    "columns": _of("return torch.log_softmax(-SITE, 0)", is_shifted=False),
    "entropy": _of("p = torch.softmax(-SITE, -1); return -(p * torch.log(p + 1e-9)).sum(-1)"),
    "sinkhorn": _of("p = torch.softmax(-SITE, -1); return p / p.sum(0)"),
    "heavy tails": _of("q = 1 / (1 + SITE); return torch.log_softmax(q, -1)", is_shifted=False),
    "roots": _of("return torch.log_softmax(-torch.sqrt(SITE + 1e-6), -1)", is_shifted=False),
    "best": _of("return torch.log_softmax(-SITE, -1).amax(-1)"),
}
# What is far here comes out of a layer that has rounded it.
_LAYERS = {
    "embedded": _of("x = self.l(x); return torch.log_softmax(-SITE, -1)", _CODES + "; self.l = nn.Linear({d}, {d})", x="l.bias"),
    "normed": _of("x = F.layer_norm(x, ({d},), self.g, self.h); return torch.log_softmax(-SITE, -1)", _CODES + "; self.g = nn.Parameter(torch.ones({d})); self.h = nn.Parameter(torch.zeros({d}))", x="h"),
}
MODELS = {"H logits": _MODELS, "O layers": _LAYERS}
OPEN = frozenset({"O layers"})
