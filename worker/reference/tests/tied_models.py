# SPDX-License-Identifier: Apache-2.0
"""Models that pick of exactly tied elements and gather by the places, by class and name, as
edge_models has them: beside each, what honest programs pick in its place, and what no program may."""

from edge_models import Edge

# Whole numbers and grids, of which many scores are one.
_GRID = "torch.randint(0, 4, ({n}, 2)).float()"
_NODES = "torch.randint(0, 4, ({e}, 2)).float()"
_FEW = "torch.randint(0, 3, ({n}, {e})).float()"
_DISTANCES = "s = (x[:, None] - z).square().sum(-1)"


def _smallest(s, count):
    """(the first so many, others beside them that are no worse, ones that are)"""
    right = f"{s}.topk({count}, -1, largest=False).indices"
    alike = (
        f"{s}.sort(dim=-1, stable=True).indices[..., :{count}]",
        f"({s}.shape[-1] - 1 - {s}.flip(-1).sort(dim=-1, stable=True).indices[..., :{count}])",
        f"(lambda o: o[{s}[..., o].argsort(dim=-1, stable=True)[..., :{count}]])(torch.arange({s}.shape[-1]) * 5 % {s}.shape[-1]"
        f" if {s}.shape[-1] % 5 else torch.arange({s}.shape[-1]).flip(0))",
    )
    wrongs = (f"{s}.topk({count} + 1, -1, largest=False).indices[..., 1:]", f"{s}.topk({count}, -1).indices")
    return tuple((right, wrong) for wrong in wrongs), alike


def _largest(s, count):
    """The same of the largest."""
    sites, alike = _smallest(f"(-{s})", count)
    right = f"{s}.topk({count}, -1).indices"
    return tuple((right, wrong) for _, wrong in sites), alike


def _one(s):
    right = f"{s}.argmax(-1)"
    alike = (f"({s}.shape[-1] - 1 - {s}.flip(-1).argmax(-1))", f"{s}.max(-1).indices", f"{s}.topk(1, -1).indices[..., 0]")
    return ((right, f"{s}.argmin(-1)"), (right, f"{s}.topk(2, -1).indices[..., 1]")), alike


def _all(s):
    right = f"{s}.argsort(-1)"
    alike = (f"({s}.shape[-1] - 1 - {s}.flip(-1).argsort(dim=-1, stable=True))", f"{s}.sort(dim=-1, stable=True).indices")
    return ((right, f"{s}.argsort(-1, descending=True)"),), alike


def _picked(init, inputs, body, sites, witness="t[list(t)[-1]] *= 1"):
    return Edge(init, inputs, body, sites[0], witness, sites[1])


_POINTS = {"x": _GRID, "z": _NODES}
_TIED = {
    "neighbours on a grid": _picked(
        "self.v = nn.Parameter(torch.randn({e}, {d}))", _POINTS, _DISTANCES + "; return self.v[SITE].mean(1)", _smallest("s", "{k}")
    ),
    "edges of neighbours": _picked(
        "self.l = nn.Linear(4, {d})",
        _POINTS,
        _DISTANCES + "; h = z[SITE]; return self.l(torch.cat([h - x[:, None], h], -1)).amax(1)",
        _smallest("s", "{k}"),
    ),
    "neighbours among twins": _picked(
        "self.v = nn.Parameter(torch.randn({e}, {d}))",
        {"x": "torch.randn({n}, {d})", "z": "torch.randn({e} // 2, {d}).repeat(2, 1)"},
        _DISTANCES + "; return self.v[SITE].sum(1)",
        _smallest("s", "2"),
    ),
    "neighbours in a form": _picked(
        "self.v = nn.Parameter(torch.randn({e}, {d}))",
        _POINTS,
        "s = x.square().sum(-1, keepdim=True) - 2 * x @ z.T + z.square().sum(-1); return self.v[SITE].mean(1)",
        _smallest("s", "{k}"),
    ),
    "weighted neighbours": _picked(
        "self.v = nn.Parameter(torch.randn({e}, {d}))",
        _POINTS,
        _DISTANCES + "; i = SITE; w = 1 / (s.gather(-1, i) + 1); return (self.v[i] * (w / w.sum(-1, keepdim=True))[..., None]).sum(1)",
        _smallest("s", "{k}"),
    ),
    "votes": _picked(
        "self.register_buffer('y', torch.arange({e}) % 3)",
        _POINTS,
        _DISTANCES + "; return F.one_hot(self.y[SITE], 3).sum(1)",
        _smallest("s", "{k}"),
    ),
    "kept tokens": _picked(
        "self.l = nn.Linear({d}, {d})",
        {"x": "torch.randn(4, {n}, {d})", "s": "torch.randint(0, 4, (4, {n})).float()"},
        "i = SITE; return self.l(x.gather(1, i[..., None].expand(-1, -1, {d}))).sum(1)",
        _largest("s", "{k}"),
    ),
    "labels of the largest": _picked(
        "self.v = nn.Parameter(torch.randn({e}, {d}))", {"s": _FEW}, "return self.v[SITE]", _one("s")
    ),
    "experts of a grid": _picked(
        "self.g = nn.Parameter(torch.randint(0, 2, ({d}, {e})).float()); self.w = nn.Parameter(torch.randn({e}, {d}))",
        {"x": "torch.randint(0, 3, ({n}, {d})).float()"},
        "s = x @ self.g; i = SITE; p = s.gather(-1, i).softmax(-1); return torch.einsum('nk,nkd->nd', p, self.w[i])",
        _largest("s", "2"),
    ),
    "rows in order": _picked(
        "self.p = nn.Parameter(torch.randn({n}, {d}))",
        {"x": "torch.randn({n}, {d})", "s": "torch.randint(0, 8, ({n},)).float()"},
        "return x[SITE] + self.p",
        _all("s"),
    ),
    "running sum in order": _picked(
        "pass", {"x": "torch.rand({n}, {e})", "s": _FEW}, "return x.gather(-1, SITE).cumsum(-1)", _all("s")
    ),
    "parents of a beam": _picked(
        "self.v = nn.Parameter(torch.randn({k}, {d}))",
        {"s": "torch.randint(0, 6, ({n}, {k}, {e})).float()"},
        "f = s.flatten(1); i = SITE; return self.v[i // {e}] + (i % {e})[..., None]",
        _largest("f", "{k}"),
    ),
    "median of rows": _picked(
        "self.v = nn.Parameter(torch.randn({e}, {d}))",
        {"s": _FEW},
        "return self.v[SITE]",
        (
            (("s.median(-1).indices", "s.argmax(-1)"),),
            ("s.sort(dim=-1, stable=True).indices[:, (s.shape[-1] - 1) // 2]", "(s.shape[-1] - 1 - s.flip(-1).sort(dim=-1, stable=True).indices[:, (s.shape[-1] - 1) // 2])"),
        ),
    ),
}

MODELS = {"u tied": _TIED}
