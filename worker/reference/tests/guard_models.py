# SPDX-License-Identifier: Apache-2.0
"""Models whose operators have an epsilon, behind and before others, and programs that have none or
another one, by class and name, as edge_models has them; beside each, what honest programs have in
its place."""

import itertools

from edge_models import Edge

_X, _Z = "torch.randn({n}, {d})", "torch.randn({n}, {d})"
# Sizes of what an epsilon stands beside, and witnesses in which all tensors have them.
_SIZES = ("{eps}", "{eps} ** 0.5", "0.1 * {eps}", "10 * {eps} ** 0.5", "0")
_ALL = tuple(f"[v.mul_({size}) for v in t.values() if v.is_floating_point()]" for size in _SIZES[:4])
# What stands before an operator: (constructor, further inputs, text, witnesses).
_BEFORE = {
    "": ("pass", {}, "x", tuple(f"t['x'] *= {size}" for size in _SIZES)),
    "layer": (
        "self.l = nn.Linear({d}, {d})",
        {},
        "self.l(x)",
        tuple(f"t['l.weight'] *= {size}; t['l.bias'] *= {size}" for size in _SIZES),
    ),
    "product": ("self.w = nn.Parameter(torch.randn({d}, {d}))", {}, "x @ self.w", tuple(f"t['w'] *= {size}" for size in _SIZES)),
    "sum": ("pass", {"u": _Z}, "x + u", tuple(f"t['x'] *= {size}; t['u'] *= {size}" for size in _SIZES)),
    "difference": (
        "self.p = nn.Parameter(torch.randn({d}))",
        {},
        "x - self.p",
        tuple(f"t['x'] *= {size}; t['p'] *= {size}" for size in _SIZES),
    ),
    "gain": ("self.a = nn.Parameter(torch.ones({d}))", {}, "x * self.a", tuple(f"t['a'] *= {size}" for size in _SIZES)),
    "rectified": ("self.w = nn.Parameter(torch.randn({d}, {d}))", {}, "torch.relu(x @ self.w)", tuple(f"t['w'] *= {size}" for size in _SIZES)),
    "filter": (
        "self.c = nn.Conv1d(1, 1, 3, padding=1)",
        {},
        "self.c(x[:, None])[:, 0]",
        tuple(f"t['c.weight'] *= {size}; t['c.bias'] *= {size}" for size in _SIZES),
    ),
}
# What stands behind it: (constructor, text).
_AFTER = {
    "": ("pass", "y"),
    "gain": ("self.o = nn.Parameter(torch.randn({d}))", "y * self.o"),
    "mean": ("pass", "y.mean(0)"),
    "tanh": ("pass", "torch.tanh(y)"),
}
# Operators that have one number for a row, which has no gain.
_NARROW = frozenset({"cosine", "distance", "nearly", "overlap", "root"})


def _others(text, eps="{eps}"):
    """`text` has EPS: without it, and with others."""
    right = text.replace("EPS", eps)
    return tuple((right, text.replace("EPS", other)) for other in ("1e-36", f"{eps} * 100", f"{eps} * 1e-4"))


_ROOT = "h.square().sum(-1, keepdim=True)"
# By name: (what an operator is and what a program has in its place, honest ones of the first).
_OPERATORS = {
    "unit rows": (
        (
            *_others("F.normalize(h, dim=-1, eps=EPS)"),
            ("F.normalize(h, dim=-1, eps={eps})", "h / h.norm(dim=-1, keepdim=True)"),
            ("F.normalize(h, dim=-1, eps={eps})", "h / (h.norm(dim=-1, keepdim=True) + {eps})"),
            ("F.normalize(h, dim=-1, eps={eps})", f"h * torch.rsqrt({_ROOT} + {{eps}})"),
        ),
        ("h * (1 / h.norm(dim=-1, keepdim=True).clamp(min={eps}))",),
    ),
    "layer norm": (
        (
            *_others("F.layer_norm(h, h.shape[-1:], eps=EPS)"),
            (
                "F.layer_norm(h, h.shape[-1:], eps={eps})",
                "(h - h.mean(-1, keepdim=True)) / (h.std(-1, keepdim=True, correction=0) + {eps})",
            ),
        ),
        ("(lambda k: k * torch.rsqrt(k.square().mean(-1, keepdim=True) + {eps}))(h - h.mean(-1, keepdim=True))",),
    ),
    "root mean square": (
        (*_others("F.rms_norm(h, h.shape[-1:], eps=EPS)"), *_others("(h / torch.sqrt(h.square().mean(-1, keepdim=True) + EPS))")),
        (),
    ),
    "batch norm": (
        _others("F.batch_norm(h, None, None, training=True, eps=EPS)"),
        ("(lambda k: k * torch.rsqrt(k.square().mean(0) + {eps}))(h - h.mean(0))",),
    ),
    "group norm": (
        (*_others("F.group_norm(h, 2, eps=EPS)"), *_others("F.instance_norm(h[None], eps=EPS)[0]")),
        (),
    ),
    "standardized": (
        (
            *_others("((h - h.mean(-1, keepdim=True)) / (h.std(-1, keepdim=True) + EPS))"),
            (
                "((h - h.mean(-1, keepdim=True)) / (h.std(-1, keepdim=True) + {eps}))",
                "((h - h.mean(-1, keepdim=True)) / (h.var(-1, keepdim=True) + {eps}).sqrt())",
            ),
        ),
        (),
    ),
    "bounded divisor": (
        (
            *_others("(h / h.abs().sum(-1, keepdim=True).clamp_min(EPS))"),
            *_others("(h / h.abs().amax(-1, keepdim=True).clamp(min=EPS))"),
            ("(h / h.abs().sum(-1, keepdim=True).clamp_min({eps}))", "(h / (h.abs().sum(-1, keepdim=True) + {eps}))"),
        ),
        (),
    ),
    "inverse": ((*_others("(1e-3 / (h.abs() + EPS)).clamp(max=1e30)"), *_others("torch.rsqrt(h.square() + EPS)"),), ()),
    "root": (
        (
            *_others("torch.sqrt(h.square() + EPS)"),
            *_others("(h.square().sum(-1) + EPS).sqrt()"),
            *_others("(h / (h.square() + EPS).sqrt())"),
        ),
        (),
    ),
    "logarithm": (
        (
            *_others("torch.log(h.abs() + EPS).clamp(min=-90)"),
            *_others("torch.log(torch.relu(h) + EPS).clamp(min=-90)"),
            ("torch.log(h.abs() + {eps}).clamp(min=-90)", "torch.log(h.abs().clamp(min={eps})).clamp(min=-90)"),
        ),
        ("(torch.log2(h.abs() + {eps}) * 0.6931471805599453).clamp(min=-90)",),
    ),
    "response": (
        (*_others("(lambda g: h * (g / (g.mean(-1, keepdim=True) + EPS)))(h.norm(dim=0, keepdim=True))"),),
        ("(h * h.norm(dim=0, keepdim=True) / (h.norm(dim=0, keepdim=True).mean(-1, keepdim=True) + {eps}))",),
    ),
    "squashed": (
        (*_others(f"({_ROOT} / (1 + {_ROOT}) * h / ({_ROOT}.sqrt() + EPS) / {{eps}})"),),
        (),
    ),
    "linear attention": (
        (*_others("(lambda q: (q @ (q.T @ h)) / (q @ q.sum(0)[:, None] + EPS))(torch.relu(h))"),),
        (),
    ),
    "overlap": (
        (
            *_others("((2 * (h * h).sum(-1) + EPS) / (h.abs().sum(-1) + h.square().sum(-1) + EPS))"),
            *_others("((h.abs().amin(-1) + EPS) / (h.abs().amax(-1) + EPS))"),
        ),
        (),
    ),
}
# Those of two inputs.
_PAIRED = {
    "cosine": (
        (
            *_others("F.cosine_similarity(h, z, dim=-1, eps=EPS)"),
            ("F.cosine_similarity(h, z, dim=-1, eps={eps})", "((h * z).sum(-1) / (h.norm(dim=-1) * z.norm(dim=-1)).clamp(min={eps}))"),
            ("F.cosine_similarity(h, z, dim=-1, eps={eps})", "((h * z).sum(-1) / (h.norm(dim=-1) * z.norm(dim=-1) + {eps}))"),
            ("F.cosine_similarity(h, z, dim=-1, eps={eps})", "((h * z).sum(-1) / (h.norm(dim=-1) * z.norm(dim=-1)))"),
        ),
        ("((h / h.norm(dim=-1, keepdim=True).clamp(min={eps})) * (z / z.norm(dim=-1, keepdim=True).clamp(min={eps}))).sum(-1)",),
    ),
    "distance": (
        (
            *_others("F.pairwise_distance(h, z, eps=EPS)"),
            ("F.pairwise_distance(h, z, eps={eps})", "(h - z).norm(dim=-1)"),
            ("F.pairwise_distance(h, z, eps={eps})", "((h - z).square().sum(-1) + {eps}).sqrt()"),
            *_others("F.triplet_margin_loss(h, z, h.flip(0), margin=1e-4, eps=EPS, reduction='none')"),
        ),
        ("(h - z + {eps}).square().sum(-1).sqrt()",),
    ),
    "divided": (
        (*_others("(h / (z.norm(dim=-1, keepdim=True) + EPS))"), *_others("(h / torch.sqrt(z.square() + EPS))")),
        (),
    ),
    "nearly": (
        (*_others("(1 / ((h - z).square().sum(-1) + EPS))"), *_others("torch.sqrt((h - z).square() + EPS)")),
        (),
    ),
}


def _combined(operators, further):
    """Each operator between what may stand before and behind it, with `further` inputs."""
    found = {}
    for before, operator, after in itertools.product(_BEFORE, operators, _AFTER):
        if after == "gain" and operator in _NARROW:
            continue
        init, inputs, text, witnesses = _BEFORE[before]
        last, result = _AFTER[after]
        all_sites, alike = operators[operator]
        more = tuple(f"{each}; t['z'] *= {size}" for each, size in zip(witnesses, _SIZES)) if further else ()
        twins = ("t['z'] = t['x'].clone()", "t['z'] = t['x'] * (1 + 1e-6)") if further else ()
        for number, right in enumerate(dict.fromkeys(right for right, _ in all_sites)):
            found[f"{operator} {number} behind {before or 'nothing'} before {after or 'nothing'}"] = Edge(
                "; ".join(part for part in (init, last) if part != "pass") or "pass",
                {"x": _X, **inputs, **further},
                f"h = {text}; y = SITE; return {result}",
                tuple(site for site in all_sites if site[0] == right),
                (*witnesses, *more, *twins, *_ALL),
                () if number else alike,
            )
    return found


MODELS = {"o guard": _combined(_OPERATORS, {}) | _combined(_PAIRED, {"z": _Z})}
