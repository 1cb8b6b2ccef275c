# SPDX-License-Identifier: Apache-2.0
"""Models that compare or order by several numbers at once, or count several things, by class and
name, as edge_models has them, and programs that pack these into one word, whose fields are too
narrow for larger ones."""

from edge_models import Edge

_ROWS = "torch.randint(0, {k} * 3, ({n}, 3))"
_ONE = "torch.randint(0, {k} * 3, ({n},))"
_Z = "torch.randn({n}, {d})"
_EQUAL = "(i[:, None] == i).all(-1)"
_VOXELS = "q = torch.floor(x * 2).long(); "


def _keyed(right, rows, key):
    """A site of equality of rows, by a key of these; `key` is an expression of r."""
    return right, f"(lambda w: w[:, None] == w)((lambda r: {key})({rows}))"


_KEYS = (
    "(r[..., 0] * 1000 + r[..., 1]) * 1000 + r[..., 2]",
    "(r[..., 0] * 100 + r[..., 1]) * 100 + r[..., 2]",
    "(r[..., 0] << 20) + (r[..., 1] << 10) + r[..., 2]",
    "((r[..., 0] & 255) << 16) | ((r[..., 1] & 255) << 8) | (r[..., 2] & 255)",
    "((r[..., 0] & 1023) << 20) | ((r[..., 1] & 1023) << 10) | (r[..., 2] & 1023)",
    "(r[..., 0] * 256 + r[..., 1]) * 256 + r[..., 2]",
    "(r[..., 0] * 10000 + r[..., 1] * 100 + r[..., 2])",
    "((r[..., 0] << 42) ^ (r[..., 1] << 21) ^ r[..., 2])",
)
_KEYS_OF_TWO = (
    "r[..., 0] * 1000 + r[..., 1]",
    "r[..., 0] * 65536 + r[..., 1]",
    "(r[..., 0] << 16) | (r[..., 1] & 65535)",
    "(r[..., 0] << 32) | (r[..., 1] & 4294967295)",
    "r[..., 0] * 10000 + r[..., 1]",
)
# Two rows that are one for some key.
_COLLIDING = tuple(
    f"t[K][0] = 0; t[K][1] = 0; t[K][0, {at}] = 1; t[K][1, {at + 1}] = {base}"
    for at in (0, 1)
    for base in (100, 256, 1000, 1 << 10, 10000, 1 << 16, 1 << 21, 1 << 32)
) + tuple(f"t[K][0] = 0; t[K][1] = 0; t[K][1, 0] = {base}" for base in (256, 1024, 1 << 22, 1 << 32))


def _colliding(name):
    return tuple(text.replace("t[K]", f"t['{name}']") for text in _COLLIDING)


_APART = tuple(
    f"t['a'][0] = t['b'][0] = 0; t['a'][1] = t['b'][1] = 0; t['a'][0] = 1; t['b'][1] = {base}" for base in (1000, 10000, 1 << 16, 1 << 32)
) + ("t['a'][0] = t['b'][0] = 0; t['a'][1] = t['b'][1] = 0; t['a'][1] = 1 << 32",)
_PAIR = "torch.stack([a, b], -1)"
_EQUAL_PAIR = "((a[:, None] == a) & (b[:, None] == b))"
_BEFORE = "((a[:, None] > a) | (a[:, None] == a) & (b[:, None] > b))"


def _ordered(key):
    return _BEFORE, f"(lambda w: w[:, None] > w)((lambda r: {key})({_PAIR}))"


_EQUALS = {
    "rows": Edge("pass", {"i": _ROWS}, "return SITE.sum(-1)", tuple(_keyed(_EQUAL, "i", key) for key in _KEYS), _colliding("i"), ("(i[:, None] - i).abs().amax(-1) == 0",)),
    "means of cells": Edge(
        "pass",
        {"i": _ROWS, "z": _Z},
        "m = SITE.to(z.dtype); return m @ z / m.sum(-1, keepdim=True)",
        tuple(_keyed(_EQUAL, "i", key) for key in _KEYS),
        _colliding("i"),
        ("(i.unsqueeze(1) == i.unsqueeze(0)).prod(-1).bool()",),
    ),
    "voxels": Edge(
        "pass",
        {"x": "torch.rand({n}, 3) * {k}", "z": _Z},
        _VOXELS + "m = SITE.to(z.dtype); return m @ z / m.sum(-1, keepdim=True)",
        tuple(_keyed(_EQUAL.replace("i", "q"), "q", key) for key in _KEYS),
        tuple(f"t['x'][:] = 0; t['x'][0, {at}] = 0.5; t['x'][1, {at + 1}] = {base / 2}" for at in (0, 1) for base in (100, 256, 1000, 1 << 10, 1 << 21))
        + tuple(f"t['x'][:] = 0; t['x'][1, {at}] = {base / 2}" for at in (0, 1, 2) for base in (256, 1024, 1 << 22)),
    ),
    "pairs": Edge(
        "pass",
        {"a": _ONE, "b": _ONE, "z": _Z},
        "m = SITE.to(z.dtype); return m @ z",
        tuple(_keyed(_EQUAL_PAIR, _PAIR, key) for key in _KEYS_OF_TWO),
        _APART,
    ),
    "first of its kind": Edge(
        "pass",
        {"a": _ONE, "b": _ONE, "z": _Z},
        "return torch.where((SITE & torch.ones({n}, {n}).tril(-1).bool()).any(-1)[:, None], 0, z)",
        tuple(_keyed(_EQUAL_PAIR, _PAIR, key) for key in _KEYS_OF_TWO),
        _APART,
    ),
    "found in a list": Edge(
        "self.register_buffer('c', torch.randint(0, {k} * 3, ({e}, 3)))",
        {"i": _ROWS, "z": _Z},
        "return torch.where(SITE.any(-1)[:, None], z, -z)",
        tuple(("(i[:, None] == self.c).all(-1)", f"((lambda r: {key})(i)[:, None] == (lambda r: {key})(self.c))") for key in _KEYS),
        tuple(text.replace("t['i'][0]", "t['c'][0]").replace("t['i'][0,", "t['c'][0,") + "; t['c'][1:] = -7; t['i'][2:] = 9" for text in _colliding("i")),
    ),
}
_ORDERS = {
    "ranks": Edge("pass", {"a": _ONE, "b": _ONE}, "return SITE.sum(-1)", tuple(map(_ordered, _KEYS_OF_TWO)), _APART),
    "sums of what comes before": Edge("pass", {"a": _ONE, "b": _ONE, "z": _Z}, "return SITE.to(z.dtype) @ z", tuple(map(_ordered, _KEYS_OF_TWO)), _APART),
    "largest with its place": Edge(
        "pass",
        {"i": "torch.randint(0, 50, ({n}, 24))"},
        "return SITE",
        tuple(("i.amax(-1)", text) for text in ("(((i << 16) | torch.arange(24)).int().amax(-1) >> 16).long()", "(((i << 8) | torch.arange(24)).int().amax(-1) >> 8).long()", "(i * 1000 + torch.arange(24)).int().amax(-1).long() // 1000")),
        ("t['i'][1, 3] = 1 << 20", "t['i'][1, 3] = 1 << 28"),
    ),
    "numbered in order": Edge(
        "self.v = nn.Parameter(torch.randn(40, {d}))",
        {"a": _ONE, "b": _ONE},
        "return self.v[SITE.sum(-1)]",
        tuple(map(_ordered, _KEYS_OF_TWO)),
        _APART,
    ),
}
_THREE = {"a": "torch.rand({n}, 40) < 0.4", "b": "torch.rand({n}, 40) < 0.4", "c": "torch.rand({n}, 40) < 0.4"}
_SUM = "torch.stack([a.sum(-1), b.sum(-1), c.sum(-1)], -1)"


def _swar(bits):
    most = (1 << bits) - 1
    return f"(lambda w: torch.stack([w & {most}, (w >> {bits}) & {most}, (w >> {2 * bits}) & {most}], -1))((a + (b.long() << {bits}) + (c.long() << {2 * bits})).sum(-1))"


_NUMBERS = {name: "torch.randint(0, {k}, ({n}, 24))" for name in "abc"}
_COUNTS = {
    "of masks": Edge("pass", _THREE, "a, b, c = a.long(), b.long(), c.long(); return SITE", ((_SUM, _swar(5)),), "t['a'][1] = True"),
    "of many": Edge("pass", {k: v.replace("40", "300") for k, v in _THREE.items()}, "a, b, c = a.long(), b.long(), c.long(); return SITE", ((_SUM, _swar(8)),), "t['b'][1] = True"),
    "of numbers": Edge("pass", _NUMBERS, "return SITE", ((_SUM, _swar(8)), (_SUM, _swar(10)), (_SUM, _swar(16)), (_SUM, _swar(20))), ("t['b'][1] = 100", "t['b'][1] = 1 << 20")),
    "hash": Edge(
        "self.v = nn.Parameter(torch.randn(97, {d}))",
        {name: _ONE for name in "abc"},
        "return self.v[SITE % 97]",
        (("(a * 1000003 + b * 1009 + c)", "(a * 1000003 + b * 1009 + c).int().long()"), ("((a * 31 + b) * 31 + c)", "((a * 31 + b) * 31 + c).int().long()")),
        "t['a'][1] = 1 << 40",
    ),
    "digits": Edge(
        "pass",
        {name: _ONE for name in "abc"},
        "return SITE % 1000",
        (("(a * 10000 + b * 100 + c)", "(a * 10000 + b * 100 + c).float().long()"), ("(a * 10000 + b * 100 + c)", "(a * 10000 + b * 100 + c).int().long()")),
        ("t['a'][:] = 1234567; t['c'][:] = 1", "t['a'][:] = 3000001"),
    ),
}
MODELS = {"C equal": _EQUALS, "D order": _ORDERS, "E counts": _COUNTS}
