# SPDX-License-Identifier: Apache-2.0
"""Models with a bound or an end between their operators, and programs that lack one side of it or
take it for another, by class and name, as edge_models has them."""

import itertools

from edge_models import Edge

_X, _Z = "torch.randn({n}, {d})", "torch.randn({n}, {d})"
_FACTORS = (10, 100, 1e3, 1e4, 0.1, 1e-2, 1e-4)


def _scaled(*names):
    return tuple("; ".join(f"t['{name}'] *= {factor}" for name in names) for factor in _FACTORS)


def _filled(name):
    return tuple(f"t['{name}'].fill_({value})" for value in (3, -3, 6, -6, 9.5, -9.5, 15, -15, 30, -30))


# What stands before: (constructor, further inputs, text, witnesses).
_BEFORE = {
    "nothing": ("pass", {}, "x", (*_scaled("x"), *_filled("x"))),
    "layer": ("self.l = nn.Linear({d}, {d})", {}, "self.l(x)", (*_scaled("x"), *_filled("l.bias"))),
    "deep": (
        "self.l = nn.Linear({d}, {e}); self.m = nn.Linear({e}, {d})",
        {},
        "self.m(F.silu(self.l(x)))",
        (*_scaled("x"), *_filled("m.bias")),
    ),
    "norm": (
        "self.g = nn.Parameter(torch.ones({d})); self.b = nn.Parameter(torch.zeros({d}))",
        {},
        "F.layer_norm(x, ({d},), self.g, self.b)",
        (*_scaled("g"), *_filled("b")),
    ),
    "batch norm": (
        "self.g = nn.Parameter(torch.ones({d})); self.b = nn.Parameter(torch.zeros({d}))",
        {},
        "F.batch_norm(x, None, None, self.g, self.b, True)",
        (*_scaled("g"), *_filled("b")),
    ),
    "filter": (
        "self.c = nn.Conv1d(1, 1, 3, padding=1)",
        {},
        "self.c(x[:, None])[:, 0]",
        (*_scaled("x"), *_filled("c.bias")),
    ),
    "sum": ("pass", {"u": _Z}, "x + u", (*_scaled("x"), *_scaled("x", "u"), "t['x'].fill_(9); t['u'].fill_(-5)")),
    "product": ("pass", {"u": _Z}, "x * u", (*_scaled("x"), "t['x'].fill_(3); t['u'].fill_(-3)", "t['x'].fill_(5); t['u'].fill_(3)")),
    "gain": ("self.a = nn.Parameter(torch.ones({d}))", {}, "x * self.a", (*_scaled("a"), *_scaled("x"), *_filled("x"))),
    "scores": ("self.w = nn.Parameter(torch.randn({d}, {d}) * 0.1)", {"u": _Z}, "x @ self.w + u", (*_scaled("x"), *_scaled("u"))),
}
_AFTER = {
    "nothing": ("pass", "y"),
    "layer": ("self.o = nn.Parameter(torch.randn({d}, {e}) * 0.3)", "y @ self.o"),
    "gate": ("self.o = nn.Parameter(torch.randn({d}))", "y * (1 + self.o)"),
    "sum": ("pass", "y.sum(-1)"),
    "softmax": ("pass", "torch.softmax(y, -1)"),
}


def _sites(right, *wrongs):
    return tuple((right, wrong) for wrong in wrongs)


_SPLUS = "F.softplus(h)"
_OPERATORS = {
    "hardtanh": _sites("F.hardtanh(h)", "h.clamp(max=1)", "h.clamp(min=-1)", "F.hardtanh(h, -1.01, 1.01)"),
    "wide hardtanh": _sites("F.hardtanh(h, -8.0, 8.0)", "h.clamp(max=8)", "h.clamp(min=-8)", "h"),
    "relu6": _sites("F.relu6(h)", "F.relu(h)", "h.clamp(max=6)", "h.clamp(0, 6.02)"),
    "hardswish": _sites("F.hardswish(h)", "(h * F.relu(h + 3) / 6)", "(h * (h + 3).clamp(max=6) / 6)", "torch.where(h > -2.9, F.hardswish(h), 0)"),
    "hardsigmoid": _sites("F.hardsigmoid(h)", "((h + 3) / 6).clamp(min=0)", "((h + 3) / 6).clamp(max=1)", "((h + 3) / 6)"),
    "threshold": _sites("F.threshold(h, 0.5, -2.0)", "torch.where(h > 0.5, h, 0.0)", "F.threshold(h, 0.49, -2.0)"),
    "far threshold": _sites("F.threshold(h, -9.0, 4.0)", "h", "h.clamp(min=-9)"),
    "softplus": _sites(_SPLUS, "torch.log(1 + torch.exp(h))", "torch.where(h > 8, h, torch.log1p(torch.exp(h.clamp(max=8))))", "torch.where(h < -7, 0, F.softplus(h))"),
    "early softplus": _sites("F.softplus(h, 1, 4)", "F.softplus(h)", "F.softplus(h, 1, 5)", "torch.logaddexp(h, h * 0)"),
    "steep softplus": _sites("F.softplus(h, 0.5, 3)", "F.softplus(h, 0.5)", "F.softplus(h, 0.5, 2.5)"),
    "gelu": _sites("F.gelu(h)", "F.gelu(h, approximate='tanh')", "(h * torch.sigmoid(1.702 * h))", "torch.where(h < -3, 0, F.gelu(h))", "torch.where(h > 3.2, h, F.gelu(h))"),
    "gelu by tanh": _sites("F.gelu(h, approximate='tanh')", "F.gelu(h)", "torch.where(h < -3.2, 0, F.gelu(h, approximate='tanh'))"),
    "silu": _sites("F.silu(h)", "torch.where(h > 8, h, F.silu(h))", "torch.where(h < -8, 0, F.silu(h))", "(h * torch.exp(h) / (1 + torch.exp(h)))"),
    "mish": _sites("F.mish(h)", "(h * torch.tanh(torch.log(1 + torch.exp(h))))", "torch.where(h < -8, 0, F.mish(h))"),
    "elu": _sites("F.elu(h)", "torch.where(h < -6, -1, F.elu(h))", "torch.where(h > 0, h, torch.exp(h) - 1)", "torch.where(h < -4, -1, F.elu(h))"),
    "selu": _sites("F.selu(h)", "torch.where(h < -7, -1.7580993408473766, F.selu(h))", "F.elu(h, 1.67)"),
    "celu": _sites("F.celu(h, 2.0)", "F.elu(h, 2.0)", "torch.where(h < -9, -2, F.celu(h, 2.0))"),
    "sigmoid": _sites("torch.sigmoid(h)", "torch.where(h > 8, 1, torch.sigmoid(h))", "torch.where(h < -8, 0, torch.sigmoid(h))", "(torch.exp(h) / (1 + torch.exp(h)))"),
    "closed": _sites("(1 - torch.sigmoid(h))", "torch.where(h > 9, 0, 1 - torch.sigmoid(h))", "(1 - torch.sigmoid(h).clamp(max=0.9999))"),
    "odds": _sites("(-torch.log1p(-torch.sigmoid(h).clamp(max=0.999999)))", "(-torch.log1p(-torch.sigmoid(h).clamp(max=0.9999)))"),
    "logsigmoid": _sites("F.logsigmoid(h)", "torch.log(torch.sigmoid(h))", "torch.where(h > 8, 0, F.logsigmoid(h))", "(-torch.log(1 + torch.exp(-h)))"),
    "tanh": _sites("torch.tanh(h)", "torch.where(h.abs() > 4, h.sign(), torch.tanh(h))", "(h * (27 + h * h) / (27 + 9 * h * h)).clamp(-1, 1)", "(1 - 2 / (torch.exp(2 * h) + 1)).nan_to_num(0)"),
    "slope": _sites("(1 - torch.tanh(h).square())", "torch.where(h.abs() > 4.5, 0, 1 - torch.tanh(h).square())"),
    "capped": _sites("(30 * torch.tanh(h / 30))", "h", "h.clamp(-30, 30)"),
    "clamped": _sites("h.clamp(-10, 10)", "h.clamp(max=10)", "h.clamp(min=-10)", "h"),
    "late clamp": _sites("h.clamp(-1000, 1000)", "h.clamp(max=1000)", "h.clamp(min=-1000)", "h"),
    "exponential of a clamp": _sites("torch.exp(h.clamp(-20, 2))", "torch.exp(h.clamp(max=2))", "torch.exp(h.clamp(min=-20))", "torch.exp(h.clamp(-20, 2.01))"),
    "softshrink": _sites("F.softshrink(h, 0.3)", "torch.where(h > 0.3, h - 0.3, 0)", "torch.where(h.abs() > 0.3, h, 0)"),
    "hardshrink": _sites("F.hardshrink(h, 0.3)", "torch.where(h > 0.3, h, 0)", "F.hardshrink(h, 0.31)"),
    "tanhshrink": _sites("F.tanhshrink(h)", "torch.where(h.abs() > 6, h - h.sign() * 0.9999, F.tanhshrink(h))"),
    "leaky": _sites("F.leaky_relu(h, 0.01)", "F.relu(h)", "F.leaky_relu(h, 0.0101)"),
    "share": _sites("torch.softmax(h, -1)", "(lambda p: torch.where(p > 0.9999, 1, p))(torch.softmax(h, -1))", "(lambda p: torch.where(p < 1e-4, 0, p))(torch.softmax(h, -1))", "(lambda e: e / e.sum(-1, keepdim=True))(torch.exp(h.clamp(max=80)))"),
    "rest": _sites("(1 - torch.softmax(h, -1))", "(1 - (lambda p: torch.where(p > 0.9999, 1, p))(torch.softmax(h, -1)))"),
    "with logits": _sites("F.binary_cross_entropy_with_logits(h, x, reduction='none')", "F.binary_cross_entropy_with_logits(h, x.clamp(0, 1), reduction='none')", "F.binary_cross_entropy_with_logits(h, x.clamp(max=4), reduction='none')", "(h.clamp(min=0) - h * x + torch.log(1 + torch.exp(-h)))"),
}  # fmt: skip


def _combined():
    found = {}
    for before, operator, after in itertools.product(_BEFORE, _OPERATORS, _AFTER):
        init, inputs, text, witnesses = _BEFORE[before]
        last, result = _AFTER[after]
        found[f"{operator} behind {before} before {after}"] = Edge(
            "; ".join(part for part in (init, last) if part != "pass") or "pass",
            {"x": _X, **inputs},
            f"h = {text}; y = SITE; return {result}",
            _OPERATORS[operator],
            witnesses,
        )
    return found


# Targets of a cross entropy by logits, which PyTorch takes beyond one; the other one refuses them.
_TARGETS = {
    f"{kind} targets {where}": Edge(
        init,
        {"x": _X, "y": target},
        f"h = {h}; return SITE",
        _sites(
            "F.binary_cross_entropy_with_logits(h, y, reduction={})".format(repr(reduction)),
            "F.binary_cross_entropy_with_logits(h, y.clamp(0, 1), reduction={})".format(repr(reduction)),
            "F.binary_cross_entropy_with_logits(h, y.clamp(max=1), reduction={})".format(repr(reduction)),
            "F.binary_cross_entropy_with_logits(h, y.clamp(min=0), reduction={})".format(repr(reduction)),
        ),
        ("t['y'] += 1.5", "t['y'] -= 2", "t['y'] *= 3"),
        (),
    )
    for kind, target in (
        ("soft", "torch.rand({n}, {d})"),
        ("hard", "torch.randint(0, 2, ({n}, {d})).float()"),
        ("smooth", "torch.randint(0, 2, ({n}, {d})).float() * 0.9 + 0.05"),
    )
    for where, init, h in (("alone", "pass", "x"), ("behind a layer", "self.l = nn.Linear({d}, {d})", "self.l(x)"))
    for reduction in ("mean", "none")
}
MODELS = {"p bound": _combined(), "q target": _TARGETS}
