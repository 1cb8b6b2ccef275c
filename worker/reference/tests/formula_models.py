# SPDX-License-Identifier: Apache-2.0
"""Models whose formula, intrinsic or epsilon programs take for another one, by class and name, as
edge_models has them; beside each, what honest programs have in its place."""

from edge_models import Edge

_X, _Z = "torch.randn({n}, {d})", "torch.randn({n}, {d})"
_FAR = "t['x'] += 2000"
_IMAGE = "torch.randn(3, 8, {n})"


def _normed(axis, eps):
    """(by two passes, by moments, honest ones in other orders) of `h` over an axis."""
    to = f"({axis}, keepdim=True)"
    mean, square = f"h.mean{to}", f"(h * h).mean{to}"
    running = f"(sum(h.unbind({axis})).unsqueeze({axis}) / h.shape[{axis}])"
    parts = f"(sum(c.sum{to} for c in h.chunk(4, {axis})) / h.shape[{axis}])"
    right = f"(h - {mean}) * torch.rsqrt((h - {mean}).square().mean{to} + {eps})"
    wrongs = (
        f"(h - {mean}) * torch.rsqrt(({square} - {mean}.square()).clamp(min=0) + {eps})",
        f"(h - {running}) * torch.rsqrt((sum((h * h).unbind({axis})).unsqueeze({axis}) / h.shape[{axis}]"
        f" - {running}.square()).clamp(min=0) + {eps})",
        f"(lambda r: (h * r - {mean} * r))(torch.rsqrt(({square} - {mean} * {mean}).clamp(min=0) + {eps}))",
    )
    alike = (
        f"(h - {mean}) / ((h - {mean}).square().mean{to} + {eps}).sqrt()",
        f"(lambda k: k * torch.rsqrt(sum((k * k).unbind({axis})).unsqueeze({axis}) / k.shape[{axis}] + {eps}))(h - {running})",
        f"(lambda k: k * torch.rsqrt(k.square().mean{to} + {eps}))(h - {parts})",
    )
    return right, wrongs, alike


def _moments(init, inputs, body, axis):
    right, wrongs, alike = _normed(axis, "1e-5")
    return Edge(init, inputs, body, tuple((right, wrong) for wrong in wrongs), _FAR, alike)


_GAIN = "self.g = nn.Parameter(torch.ones({d})); self.b = nn.Parameter(torch.zeros({d}))"
_MOMENTS = {
    "layer norm": _moments(_GAIN, {"x": _X}, "h = x; return SITE * self.g + self.b", "-1"),
    "wide layer norm": _moments(
        "self.g = nn.Parameter(torch.ones(512))", {"x": "torch.randn({n}, 512)"}, "h = x; return SITE * self.g", "-1"
    ),
    "batch norm": _moments(_GAIN, {"x": "torch.randn(64, {d})"}, "h = x; return SITE * self.g + self.b", "0"),
    "instance norm": _moments("pass", {"x": _IMAGE}, "h = x; return SITE", "-1"),
    "group norm": _moments(
        "self.g = nn.Parameter(torch.ones(8))",
        {"x": _IMAGE},
        "h = x.view(3, 4, -1); return SITE.view(3, 8, -1) * self.g[:, None]",
        "-1",
    ),
    "norm and layer": _moments(
        "self.l = nn.Linear({d}, {e})", {"x": _X}, "h = x; return F.gelu(self.l(SITE))", "-1"
    ),
    "behind a sum": _moments("pass", {"x": _X, "z": _Z}, "h = x + z; return SITE", "-1"),
    "behind a bias": _moments(
        "self.c = nn.Parameter(torch.randn({d}) * 0.1)", {"x": _X}, "h = x + self.c; return SITE", "-1"
    ),
    "norm of images": _moments(
        "self.g = nn.Parameter(torch.ones(8))",
        {"x": "torch.randn(8, 8, 36, 36)"},
        "h = x.transpose(0, 1).reshape(8, -1); return SITE.view(8, 8, 36, 36).transpose(0, 1) * self.g[:, None, None]",
        "-1",
    ),
    "norm of each image": _moments(
        "pass", {"x": "torch.randn(8, 8, 36, 36)"}, "h = x.flatten(2); return SITE.view(8, 8, 36, 36)", "-1"
    ),
    "norm of pixels": _moments(
        "self.c = nn.Conv2d(3, 4, 3)", {"x": "torch.rand(8, 3, 64, 64)"}, "h = x.flatten(1); return self.c(SITE.view(8, 3, 64, 64))", "-1"
    ),
    "long layer norm": _moments(
        "self.g = nn.Parameter(torch.ones(256))", {"x": "torch.randn(300, 256)"}, "h = x; return SITE * self.g", "-1"
    ),
    "behind a filter": _moments(
        "self.w = nn.Parameter(torch.rand(8, 8, 3) / 8)",
        {"x": "torch.randn(4, 8, 48)"},
        "h = F.conv1d(x, self.w); return SITE",
        "-1",
    ),
    "deviation": Edge(
        "pass",
        {"x": "torch.randn({n}, 48)"},
        "return SITE",
        (
            ("x.std(-1)", "((x.square().mean(-1) - x.mean(-1).square()).clamp(min=0) * 48 / 47).sqrt()"),
            ("x.std(-1)", "((x.square().sum(-1) - x.sum(-1).square() / 48).clamp(min=0) / 47).sqrt()"),
        ),
        _FAR,
        ("((x - x.mean(-1, keepdim=True)).square().sum(-1) / 47).sqrt()", "(x - x.mean(-1, keepdim=True)).norm(dim=-1) / 47**0.5"),
    ),
    "covariance": Edge(
        "pass",
        {"x": "torch.randn(64, {d})"},
        "m = x.mean(0); return SITE",
        (("(x - m).T @ (x - m) / 64", "x.T @ x / 64 - torch.outer(m, m)"),),
        _FAR,
        ("torch.einsum('ni,nj->ij', x - m, x - m) * (1 / 64)",),
    ),
    "correlation": Edge(
        "pass",
        {"x": "torch.randn({n}, 32)", "z": "torch.randn({n}, 32)"},
        "return SITE",
        (
            (
                "F.cosine_similarity(x - x.mean(-1, keepdim=True), z - z.mean(-1, keepdim=True), dim=-1)",
                "(x * z).mean(-1).sub(x.mean(-1) * z.mean(-1)) / ((x * x).mean(-1) - x.mean(-1).square()).clamp(min=1e-12).sqrt()"
                " / ((z * z).mean(-1) - z.mean(-1).square()).clamp(min=1e-12).sqrt()",
            ),
        ),
        "t['x'] += 2000",
        (
            "((x - x.mean(-1, keepdim=True)) * (z - z.mean(-1, keepdim=True))).sum(-1)"
            " / (x - x.mean(-1, keepdim=True)).norm(dim=-1).clamp(min=1e-8)"
            " / (z - z.mean(-1, keepdim=True)).norm(dim=-1).clamp(min=1e-8)",
        ),
    ),
    "mean and deviation": Edge(
        "self.l = nn.Linear({d}, {e})",
        {"x": "torch.randn({n}, 24, {d})"},
        "m = x.mean(1); s = SITE; return self.l(s)",
        (("(x.var(1, correction=0) + 1e-5).sqrt()", "((x * x).mean(1) - m * m + 1e-5).clamp(min=1e-9).sqrt()"),),
        _FAR,
        ("((x - m[:, None]).square().mean(1) + 1e-5).sqrt()",),
    ),
}

# Intrinsics as GPUs have them: off by 2^-21.4 wherever the result is, the angle in 24 bits.
_TURNS = "1335088.1"


def _sine(name, angle):
    right = f"torch.{name}({angle})"
    return ((right, f"torch.{name}((({angle}) * {_TURNS}).round() / {_TURNS})"),)


def _logarithm(argument):
    return ((f"torch.log({argument})", f"((torch.log({argument}) * 2.0**21).round() / 2.0**21)"),)


_FAST = {
    "sinc": Edge(
        "pass",
        {"x": _X},
        "a = torch.where(x == 0, 1, x); return torch.where(x == 0, 1, SITE / a)",
        _sine("sin", "a"),
        "t['x'] *= 1e-5",
        ("torch.sin(a.double()).float()",),
    ),
    "frequencies": Edge(
        "self.f = nn.Parameter(torch.rand({d}) + 0.5); self.o = nn.Parameter(torch.randn({d}))",
        {"x": "torch.randn({n}, 1)"},
        "return SITE / self.f * self.o",
        _sine("sin", "x * self.f"),
        "t['f'] *= 1e-5",
        ("(torch.sin((x * self.f).double()).float())",),
    ),
    "waves": Edge(
        "self.a = nn.Parameter(torch.randn({d})); self.f = nn.Parameter(torch.randn({d}))",
        {"x": _X},
        "return self.a * SITE",
        _sine("sin", "self.f * x"),
        "t['f'] *= 1e-5; t['a'] *= 1e5",
        ("torch.sin((self.f * x).double()).float()",),
    ),
    "rotated": Edge(
        "self.f = nn.Parameter(torch.rand({d}))",
        {"p": "torch.randint(0, 64, ({n}, 1))", "x": _X, "z": _Z},
        "a = p * self.f; return x * torch.cos(a) + z * SITE",
        _sine("sin", "a"),
        "t['f'] *= 1e-5; t['p'].fill_(1); t['z'] *= 1e6; t['x'] *= 1e-3",
        ("torch.sin(a.double()).float()",),
    ),
    "rates": Edge(
        "self.s = nn.Parameter(torch.tensor(1.5))",
        {"x": "torch.rand({n}, {d}) + 0.5"},
        "return SITE * self.s",
        _logarithm("x"),
        "t['x'] = 1 + t['x'] * 1e-6",
        ("torch.log2(x) * 0.6931471805599453",),
    ),
    "powers": Edge(
        "self.p = nn.Parameter(torch.rand({d}) * 2 + 0.5)",
        {"x": "torch.rand({n}, {d}) + 0.5"},
        "return SITE",
        (("x.pow(self.p)", "torch.exp2(self.p * ((torch.log2(x) * 2.0**21).round() / 2.0**21))"),),
        "t['x'] = 1 + t['x'] * 1e-5; t['p'] *= 1e5",
    ),
}


def _other_eps(variance, eps, others):
    """Another number beside a variance, or outside of the root."""
    right = f"torch.rsqrt({variance} + {eps})"
    wrongs = [f"torch.rsqrt({variance} + {other})" for other in others]
    return tuple((right, wrong) for wrong in [*wrongs, f"(1 / ({variance}.sqrt() + {eps}))", f"torch.rsqrt({variance}.clamp(min={eps}))"])


def _norm_alike(variance, eps):
    return (f"(1 / ({variance} + {eps}).sqrt())", f"({variance} + {eps}).pow(-0.5)")


_VAR, _RMS = "(h - h.mean(-1, keepdim=True)).square().mean(-1, keepdim=True)", "h.square().mean(-1, keepdim=True)"
_OTHERS = {"1e-5": ("1e-6", "1e-8", "2e-5"), "1e-6": ("1e-5", "1e-8"), "1e-12": ("1e-5", "1e-8"), "1e-3": ("1e-5",), "1e-8": ("1e-6", "1e-12")}
_ANOTHER = {}
for _eps, _others in _OTHERS.items():
    _small = f"t['x'] *= 0.5 * {_eps} ** 0.5"
    _ANOTHER |= {
        f"layer norm of {_eps}": Edge(
            _GAIN, {"x": _X}, "h = x; return (h - h.mean(-1, keepdim=True)) * SITE * self.g + self.b", _other_eps(_VAR, _eps, _others), _small, _norm_alike(_VAR, _eps)
        ),
        f"rms of {_eps}": Edge(
            "self.g = nn.Parameter(torch.ones({d}))", {"x": _X}, "h = x; return h * SITE * self.g", _other_eps(_RMS, _eps, _others), _small, _norm_alike(_RMS, _eps)
        ),
        f"norm of a sum of {_eps}": Edge(
            "self.g = nn.Parameter(torch.ones({d}))",
            {"x": _X, "z": _Z},
            "h = x + z; return h * SITE * self.g",
            _other_eps(_RMS, _eps, _others),
            _small + f"; t['z'] *= 0.5 * {_eps} ** 0.5",
            _norm_alike(_RMS, _eps),
        ),
        f"norm of a layer of {_eps}": Edge(
            "self.l = nn.Linear({d}, {e})",
            {"x": _X},
            "h = self.l(x); return (h - h.mean(-1, keepdim=True)) * SITE",
            _other_eps(_VAR, _eps, _others),
            f"t['l.weight'] *= 0.5 * {_eps} ** 0.5; t['l.bias'] *= 0.5 * {_eps} ** 0.5",
            _norm_alike(_VAR, _eps),
        ),
        f"batch norm of {_eps}": Edge(
            "self.register_buffer('v', torch.rand({d}) + 0.5); self.register_buffer('m', torch.randn({d}))",
            {"x": _X},
            "return (x - self.m) * SITE",
            _other_eps("self.v", _eps, _others),
            f"t['v'] *= 0.5 * {_eps}",
            _norm_alike("self.v", _eps),
        ),
        f"batch of {_eps}": Edge(
            "self.b = nn.Parameter(torch.zeros({d}))",
            {"x": "torch.randn(48, {d})"},
            "h = x.T; return ((h - h.mean(-1, keepdim=True)) * SITE).T + self.b",
            _other_eps(_VAR, _eps, _others),
            _small,
            _norm_alike(_VAR, _eps),
        ),
        f"queries and keys of {_eps}": Edge(
            "self.q = nn.Linear({d}, {d}); self.g = nn.Parameter(torch.ones({d}))",
            {"x": _X},
            "h = self.q(x); h = h * SITE * self.g; return (h @ h.T).softmax(-1) @ x",
            _other_eps(_RMS, _eps, _others),
            f"t['q.weight'] *= 0.5 * {_eps} ** 0.5; t['q.bias'] *= 0.5 * {_eps} ** 0.5",
            _norm_alike(_RMS, _eps),
        ),
    }


MODELS = {
    "i moments": _MOMENTS,
    "j fast": _FAST,
    "m another epsilon": _ANOTHER,
}
