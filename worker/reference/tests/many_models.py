# SPDX-License-Identifier: Apache-2.0
"""Models of many elements, and of waves far out, where programs lose what the model does not, by
class and name, as edge_models has them; beside each, what honest programs have in its place."""

from edge_models import Edge
from formula_models import _normed

# Powers of two beside which a deviation is small, and on which all sums of honest programs are exact.
_FAR = ("t['x'] = (t['x'] * 4).round() / 4 + 1024", "t['x'] = (t['x'] * 2).round() / 2 + 600", "t['x'] += 300", "t['x'] += 2000")
# The last element of one running sum in FP32.
_RUNNING = "torch.from_numpy(__import__('numpy').cumsum({}.detach().numpy(), axis=-1, dtype='float32')[..., -1:].copy())"


def _moments(inputs, body, init="pass", eps="1e-5"):
    right, wrongs, _ = _normed("-1", eps)
    wrongs = [wrong for wrong in wrongs if "unbind" not in wrong]
    wrongs.append(
        "(lambda s: (h - s.mean(-2, keepdim=True).mean(-1, keepdim=True)[..., 0]) * torch.rsqrt(((s * s).sum(-2).sum(-1, keepdim=True)"
        " / h.shape[-1] - (s.sum(-2).sum(-1, keepdim=True) / h.shape[-1]).square()).clamp(min=0) + EPS))(h.unflatten(-1, (-1, 64)))".replace(
            "EPS", eps
        )
    )
    # Of one thread for each row, and of a block whose 64 threads add in turn.
    running = f"({_RUNNING.format('h')} / h.shape[-1])"
    strided = "(h.unflatten(-1, (-1, 64)).sum(-2).sum(-1, keepdim=True) / h.shape[-1])"
    alike = tuple(
        f"(lambda k: k * torch.rsqrt({square} / k.shape[-1] + {eps}))(h - {mean})"
        for mean, square in (
            (running, _RUNNING.format("(k * k)")),
            (strided, "(k * k).unflatten(-1, (-1, 64)).sum(-2).sum(-1, keepdim=True)"),
        )
    )
    return Edge(init, inputs, body, tuple((right, wrong) for wrong in wrongs), _FAR, alike)


_MOMENTS = {
    "norm of images": _moments({"x": "torch.randn(4, 6, 64, 64)"}, "h = x.transpose(0, 1).reshape(6, -1); return SITE[:, ::7]"),
    "norm of each image": _moments({"x": "torch.randn(2, 3, 128, 96)"}, "h = x.flatten(2); return SITE"),
    "norm of pixels": _moments({"x": "torch.rand(6, 3, 64, 64)"}, "h = x.flatten(1); return SITE"),
    "norm of groups": _moments(
        {"x": "torch.randn(2, 8, 64, 64)"},
        "h = x.view(2, 2, -1); return SITE.view(2, 8, -1) * self.g[:, None]",
        "self.g = nn.Parameter(torch.ones(8))",
    ),
    "long rows": _moments({"x": "torch.randn(6, 12288)"}, "h = x; return SITE"),
    "long rows of a sum": _moments({"x": "torch.randn(4, 16384)", "z": "torch.randn(4, 16384)"}, "h = x + z; return SITE"),
    "long rows behind a bias": _moments(
        {"x": "torch.randn(4, 16384)"}, "h = x + self.c; return SITE", "self.c = nn.Parameter(torch.zeros(16384))"
    ),
    "very long row": _moments({"x": "torch.randn(2, 65536)"}, "h = x; return SITE"),
    "deviations": Edge(
        "pass",
        {"x": "torch.randn(64, 16384)"},
        "return SITE",
        (
            ("x.std(-1)", "((x.square().mean(-1) - x.mean(-1).square()).clamp(min=0) * 16384 / 16383).sqrt()"),
            ("x.var(-1)", "((x.square().sum(-1) - x.sum(-1).square() / 16384).clamp(min=0) / 16383)"),
        ),
        _FAR,
    ),
    "covariance": Edge(
        "pass",
        {"x": "torch.randn(16384, 12)"},
        "m = x.mean(0); return SITE",
        (("(x - m).T @ (x - m) / 16384", "x.T @ x / 16384 - torch.outer(m, m)"),),
        _FAR,
    ),
}

# A fast sine: the angle in turns is rounded to FP32, and what is left of it to 24 bits.
_FAST = "torch.{}(((ANGLE) * 0.15915493667125702).frac().mul(2.0**23).round() * (6.283185307179586 / 2.0**23))"


def _wave(name, angle):
    return ((f"torch.{name}({angle})", _FAST.format(name).replace("ANGLE", angle)),)


def _alike(name, angle):
    return (f"torch.{name}(({angle}).double()).float()",)


_WHOLE = tuple(f"t['x'] = (t['x'] * {2**power}).round()" for power in (10, 14, 18))
_WAVES = {
    "sine": Edge("pass", {"x": "torch.randn({n}, {d})"}, "return SITE", _wave("sin", "x"), _WHOLE, _alike("sin", "x")),
    "cosine": Edge("pass", {"x": "torch.randn({n}, {d})"}, "return SITE", _wave("cos", "x"), _WHOLE, _alike("cos", "x")),
    "network of sines": Edge(
        "self.o = nn.Linear({d}, {e})", {"x": "torch.randn({n}, {d})"}, "return self.o(SITE)", _wave("sin", "30 * x"), _WHOLE, _alike("sin", "30 * x")
    ),
    "positions": Edge(
        "self.register_buffer('f', 2.0 ** -torch.arange({d}).float())",
        {"x": "torch.randint(0, 128, ({n}, 1)).float()"},
        "return torch.cat([SITE, torch.cos(x * self.f)], -1)",
        _wave("sin", "x * self.f"),
        _WHOLE,
        _alike("sin", "x * self.f"),
    ),
    "rotated": Edge(
        "self.register_buffer('f', 2.0 ** -torch.arange({d}).float())",
        {"p": "torch.randint(0, 64, ({n}, 1))", "x": "torch.randn({n}, {d})"},
        "a = p * self.f; return x * SITE",
        _wave("cos", "a"),
        ("t['p'] *= 1024", "t['p'] *= 2**14", "t['p'] *= 2**17"),
        _alike("cos", "a"),
    ),
    "octaves": Edge(
        "self.w = nn.Parameter(torch.randn({d}))",
        {"x": "torch.rand({n}, 1)"},
        "return SITE * self.w",
        _wave("sin", "x * 2.0 ** torch.arange({d}, device=x.device)"),
        _WHOLE,
        _alike("sin", "x * 2.0 ** torch.arange({d}, device=x.device)"),
    ),
    "phases": Edge(
        "self.b = nn.Parameter(torch.zeros({d}))", {"x": "torch.randn({n}, {d})"}, "return SITE", _wave("sin", "x + self.b"), _WHOLE, _alike("sin", "x + self.b")
    ),
    "chirp": Edge("pass", {"x": "torch.randn({n}, {d})"}, "return SITE * x", _wave("cos", "x * x"), ("t['x'] = (t['x'] * 256).round()", "t['x'] = (t['x'] * 1024).round()"), _alike("cos", "x * x")),
    "snake": Edge(
        "self.a = nn.Parameter(torch.ones({d}))", {"x": "torch.randn({n}, {d})"}, "return x + SITE.square() / self.a", _wave("sin", "self.a * x"), _WHOLE, _alike("sin", "self.a * x")
    ),
}

# A learned bias leaves the grid, and of so many terms a sum has too few steps.
_LOST = {name: _MOMENTS.pop(name) for name in ("long rows behind a bias", "very long row")}
MODELS = {"r many": _MOMENTS, "s wave": _WAVES, "t lost": _LOST}
# Classes of which some programs are accepted still.
OPEN = frozenset({"t lost"})
