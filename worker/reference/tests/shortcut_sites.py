# SPDX-License-Identifier: Apache-2.0
"""Operators with short cuts that are right on what a file draws, and wrong elsewhere.

A site computes `s`, and where it says so `k`, a whole-numbered input; what stands in
`twins` are short cuts of it. `points` are values of `s` at which they may fail.
"""

import dataclasses
import math

import torch
import torch.nn.functional as F


@dataclasses.dataclass(frozen=True)
class Site:
    name: str
    reference: str
    # Expressions in the same names, of what this file defines, too.
    twins: tuple
    points: tuple = ()
    # How `s` may be drawn.
    inputs: tuple = ("torch.randn(32, 33)", "torch.rand(32, 33)", "torch.randn(32, 33) * 5")
    # How `k` is drawn.
    whole: str = ""
    # Whether the site takes `s` as it is drawn.
    is_bare: bool = False


_HALVES = tuple(n / 2 for n in range(-9, 10))
_POSITIVE = ("torch.rand(32, 33)", "torch.rand(32, 33) + 1", "torch.rand(32, 33) * 3 + 0.5")
_SHORT = ("torch.rand(32, 33)", "torch.rand(32, 33) * 2 + 0.5")
_WHOLE = "torch.randint(0, 33, (32, 33))"
_PERIODS = tuple(2 * math.pi * n + 1 for n in range(-3, 4))
_RANGE = ("torch.rand(32, 33)",)


def away(s):
    """Halves are rounded away from zero."""
    return torch.sign(s) * torch.floor(s.abs() + 0.5)


def quick_sin(s):
    """Right within one period around zero."""
    return torch.where(s.abs() <= math.pi, torch.sin(s), torch.zeros_like(s))


def median_above(s):
    return s.sort(-1).values[..., s.shape[-1] // 2 + 1 - s.shape[-1] % 2]


def overwritten(s, k):
    """Of what is added to one place the last stays."""
    return torch.zeros_like(s).scatter(1, k, s)


def per_place(s, k):
    return torch.zeros_like(s).scatter_add(1, k, s)


def one_pass(s):
    """The variance as the difference of two means."""
    mean = s.mean(0)
    variance = (s * s).mean(0) - mean * mean
    return (s - mean) * torch.rsqrt(variance.clamp(min=0) + 1e-5)


def expanded_distance(s, t):
    squares = s.square().sum(1, keepdim=True) + t.square().sum(1)
    return torch.sqrt((squares - 2 * s @ t.T).clamp(min=0))


def wave_root(s):
    """Right where the wave is in its first half."""
    return torch.where(s <= math.pi, torch.sqrt(torch.sin(s)), torch.zeros_like(s))


_TIES = [
    ("greater", "(s > {c}).float()", ("(s >= {c}).float()",)),
    ("at_least", "(s >= {c}).float()", ("(s > {c}).float()",)),
    ("chosen", "torch.where(s > {c}, s + 2, -s)", ("torch.where(s >= {c}, s + 2, -s)",)),
    ("thresholded", "F.threshold(s, {c}, -3.0)", ("torch.where(s >= {c}, s, -3.0 + 0 * s)",)),
    ("equal", "(s == {c}).float()", ("0 * s",)),
    ("compared", "torch.lt(s, {c}).float() * s", ("torch.le(s, {c}).float() * s",)),
]

# What is lost where outputs or rows are small.
_DELICATE = [
    ("expm1", "torch.expm1(s)", "torch.exp(s) - 1", ()),
    ("log1p", "torch.log1p(s.abs())", "torch.log(1 + s.abs())", ()),
    ("asinh", "torch.asinh(s)", "torch.log(s + torch.sqrt(s * s + 1))", ()),
    ("sinh", "torch.sinh(s)", "(torch.exp(s) - torch.exp(-s)) / 2", ()),
    ("small_tanh", "torch.tanh(s)", "1 - 2 / (torch.exp(2 * s) + 1)", ()),
    ("atanh", "torch.atanh(torch.tanh(s) / 2)", "0.5 * torch.log((2 + torch.tanh(s)) / (2 - torch.tanh(s)))", ()),
    ("small_elu", "F.elu(s)", "torch.where(s > 0, s, torch.exp(s) - 1)", ()),
    ("small_softplus", "F.softplus(s)", "torch.log(1 + torch.exp(s))", (-20.0,)),
    ("complement", "torch.sigmoid(s)", "1 - torch.sigmoid(-s)", (-20.0,)),
    ("small_hypot", "torch.hypot(s, s.flip(-1))", "torch.sqrt(s * s + s.flip(-1).square())", ()),
    ("guarded_ratio", "s / (s.abs() + 1e-12)", "torch.sign(s)", (1e-13,)),
    ("guarded_norm", "F.normalize(s, dim=-1)", "torch.nan_to_num(s / s.norm(dim=-1, keepdim=True))", (1e-14,)),
    ("unguarded_norm", "s.norm(dim=-1)", "torch.sqrt(s.square().sum(-1) + 1e-12)", ()),
    ("cosine", "F.cosine_similarity(s, s.flip(-1), dim=-1)", "(s * s.flip(-1)).sum(-1) / s.square().sum(-1).clamp(min=1e-38)", (1e-10,)),
    ("pairwise", "F.pairwise_distance(s, s.flip(-1))", "(s - s.flip(-1)).norm(dim=-1)", ()),
    ("complementary_error", "torch.erfc(s)", "1 - torch.erf(s)", (7.0,)),
    ("sparse", "s.cumsum(1)", "(s * (s[:, :8] != 0).any(1, keepdim=True)).cumsum(1)", ()),
]

# What is off where large numbers cancel; FP32 itself is off there by some of it, so that
# no witness is as clear as those of other sites.
CANCELLED = [
    Site("batch_norm", "F.batch_norm(s, None, None, training=True)", ("one_pass(s)",)),
    Site("near_points", "torch.cdist(s[:20], s[20:])", ("expanded_distance(s[:20], s[20:])",)),
]

SITES = [
    *(
        Site(f"{name}_{c}", text.format(c=c), tuple(t.format(c=c) for t in twins), (c, c + 1))
        for name, text, twins in _TIES
        for c in (0.0, 0.5, 0.75, -1.0)
    ),
    Site("round", "torch.round(s)", ("away(s)", "torch.floor(s + 0.5)", "torch.ceil(s - 0.5)"), _HALVES),
    *(
        Site(
            f"quantized_{n}",
            f"torch.clamp(torch.round(s * {n}), -128, 127) / {n}",
            (f"torch.clamp(away(s * {n}), -128, 127) / {n}", f"torch.clamp(torch.floor(s * {n} + 0.5), -128, 127) / {n}"),
            tuple(h / n for h in _HALVES),
        )
        for n in (4, 16, 10, 127)
    ),
    Site(
        "fake_quantized",
        "torch.fake_quantize_per_tensor_affine(s, 0.125, 3, 0, 255)",
        ("(torch.clamp(away(s / 0.125) + 3, 0, 255) - 3) * 0.125",),
        tuple(h / 8 for h in _HALVES),
    ),
    Site(
        "dynamic",
        "torch.round(s * (127 / s.abs().amax(-1, keepdim=True))) / 127",
        ("away(s * (127 / s.abs().amax(-1, keepdim=True))) / 127",),
        (127.0, *_HALVES),
    ),
    Site(
        "floor",
        "torch.floor(s)",
        ("torch.trunc(s)", "torch.ceil(s) - 1", "torch.round(s - 0.5)"),
        _HALVES,
    ),
    Site("ceil", "torch.ceil(s)", ("torch.floor(s) + 1", "-torch.trunc(-s)"), _HALVES),
    Site("trunc", "torch.trunc(s)", ("torch.floor(s)",), _HALVES),
    Site("frac", "torch.frac(s)", ("s - torch.floor(s)",), _HALVES),
    Site("cast", "s.to(torch.int32).float()", ("torch.floor(s)", "torch.round(s)"), _HALVES),
    Site(
        "remainder",
        "torch.remainder(s, 1.5)",
        ("torch.fmod(s, 1.5)", "torch.where(s > 1.5, s - 1.5, s)"),
        (*_HALVES, 40.5),
    ),
    Site("fmod", "torch.fmod(s, 2.0)", ("torch.remainder(s, 2.0)",), _HALVES),
    Site("wave_root", "torch.sqrt(torch.sin(s))", ("wave_root(s)",), _PERIODS, _SHORT),
    Site("root_of_wave", "torch.sqrt(torch.cos(s) + 0.25)", ("torch.sqrt(torch.where(s.abs() < 3, torch.cos(s), 0 * s) + 0.25)",), tuple(p - 1 for p in _PERIODS), _RANGE),
    Site("log_of_wave", "torch.log(torch.sin(s))", ("torch.log(torch.where(s <= math.pi, torch.sin(s), 1 + 0 * s))",), _PERIODS, _SHORT),
    Site("root_of_size", "torch.sqrt(torch.sin(s).abs())", ("torch.sqrt(torch.sin(s).clamp(min=0))",), (-1.0, 4.0)),
    Site("sin", "torch.sin(s)", ("quick_sin(s)",), _PERIODS),
    Site("tan", "torch.tan(s) / 4", ("quick_sin(s) / torch.cos(s) / 4",), _PERIODS, _RANGE),
    Site("root", "torch.sqrt(s * s)", ("s", "s.clamp(min=0)"), _HALVES),
    Site("whole_root", "torch.floor(torch.sqrt(s))", ("torch.ceil(torch.sqrt(s)) - 1",), (1.0, 4.0, 9.0), _POSITIVE),
    Site("exponent", "torch.floor(torch.log2(s))", ("torch.ceil(torch.log2(s)) - 1",), (0.5, 1.0, 2.0, 4.0), _POSITIVE),
    Site("cube", "s.pow(3)", ("s.abs().pow(3)",), _HALVES),
    Site("sign", "torch.sign(s)", ("torch.where(s >= 0, 1.0, -1.0 + 0 * s)", "torch.where(s > 0, 1.0, -1.0 + 0 * s)"), (0.0,)),
    Site("copysign", "torch.copysign(torch.ones_like(s), s)", ("torch.where(s < 0, -1.0, 1.0 + 0 * s)",), (-0.0,), is_bare=True),
    Site("inverse", "torch.where(s == 0, torch.ones_like(s), torch.sin(s) / s)", ("torch.where(s.abs() < 1e-2, torch.zeros_like(s), torch.sin(s) / s)",), (0.0, 1e-3)),
    Site("xlogy", "torch.xlogy(s, s)", ("s * torch.log(s.clamp(min=0.05))",), (0.0, 0.01), _RANGE),
    Site("hardshrink", "F.hardshrink(s, 0.75)", ("torch.where(s.abs() >= 0.75, s, 0 * s)",), (0.75, -0.75)),
    Site("tanh", "torch.tanh(s)", ("1 - 2 * torch.exp(-2 * s) / (1 + torch.exp(-2 * s))",), (-60.0,)),
    Site("softplus", "F.softplus(s)", ("torch.log1p(torch.exp(s))",), (100.0,)),
    Site("gelu", "F.gelu(s)", ("s * torch.sigmoid(1.702 * s)", "torch.where(s < -3, 0 * s, F.gelu(s))"), (-3.2,)),
    *(Site(name, text, (twin,), points, is_bare=True) for name, text, twin, points in _DELICATE),
    Site("elu", "F.elu(s, 1.5)", ("torch.where(s > -4, F.elu(s, 1.5), 0 * s)",), (-5.0,)),
    Site("smooth", "F.smooth_l1_loss(s, torch.zeros_like(s), reduction='none', beta=8.0)", ("s * s / 16",), (20.0,)),
    Site("softmax", "torch.softmax(s, -1)", ("torch.exp(s) / torch.exp(s).sum(-1, keepdim=True)",), (200.0, 0.0)),
    Site("logsumexp", "torch.logsumexp(s, -1)", ("torch.log(torch.exp(s).sum(-1))",), (200.0, 0.0)),
    Site("normalized", "F.normalize(s, dim=-1)", ("s / s.norm(dim=-1, keepdim=True)",), (0.0,)),
    Site("layer_norm", "F.layer_norm(s, (33,))", ("(s - s.mean(-1, keepdim=True)) / s.std(-1, keepdim=True, correction=0)",), (0.5,)),
    Site("maximum", "s.amax(-1)", ("s.clamp(min=0).amax(-1)",), (-1.0,)),
    Site("cummax", "torch.cummax(s, 1).values", ("torch.cummax(s.clamp(min=0), 1).values",), (-1.0,)),
    Site("cumprod", "torch.cumprod(s, 1)", ("torch.exp(torch.cumsum(torch.log(s.abs()), 1))",), (-1.0, 1.0)),
    Site("median", "torch.median(s, -1).values", ("median_above(s)", "s.mean(-1)"), _HALVES),
    Site("pool", "F.max_pool1d(s, 3, 1, padding=1)", ("F.max_pool1d(F.pad(s, (1, 1)), 3, 1)",), (-1.0,)),
    Site("count", "(s == s.amax(-1, keepdim=True)).float().sum(-1)", ("torch.ones_like(s[:, 0])",), (1.0,)),
    Site("neighbours", "(s[:, 1:] == s[:, :-1]).float()", ("torch.zeros_like(s[:, 1:])",), (1.0,)),
    Site("rising", "(s[:, 1:] > s[:, :-1]).float()", ("(s[:, 1:] >= s[:, :-1]).float()",), (1.0,)),
    Site("bucket", "torch.bucketize(s, torch.tensor([-1.0, 0.0, 0.5, 1.0])).float()", ("torch.bucketize(s, torch.tensor([-1.0, 0.0, 0.5, 1.0]), right=True).float()",), (-1.0, 0.0, 0.5, 1.0)),
    Site("added", "torch.zeros_like(s).scatter_add(1, k, s)", ("per_place(s, k.clamp(min=1))", "overwritten(s, k)"), whole="torch.randperm(33).repeat(32, 1)"),
    Site("gathered", "s.gather(1, k)", ("s.gather(1, k.sort(1).values)", "s"), whole="torch.arange(33).repeat(32, 1)"),
    Site("negative_index", "s[:, k[0]] * 1.5", ("s[:, k[0].clamp(min=0)] * 1.5",), whole=_WHOLE),
    Site("floor_division", "(k // 3) + s", ("torch.div(k, 3, rounding_mode='trunc') + s",), whole=_WHOLE),
    Site("modulus", "(k % 5) + s", ("torch.fmod(k, 5) + s",), whole=_WHOLE),
    Site("halved", "(k >> 1) + s", ("torch.div(k, 2, rounding_mode='trunc') + s",), whole=_WHOLE),
    Site("narrow", "((k * 3) % 1000).float() + s", ("((k.to(torch.int32) * 3) % 1000).float() + s",), whole=_WHOLE),
    Site("parity", "(k & 1) + s", ("torch.fmod(k, 2) + s",), whole=_WHOLE),
    Site("whole_equal", "(k == 7).float() + s", ("s",), whole="torch.randint(0, 5, (32, 33))"),
    Site("whole_float", "(k.float() > 2) * s", ("(k.float() >= 3) * s + 0 * (k == 2)", "(k.float() > 1) * s"), whole="torch.randint(0, 5, (32, 33))"),
    Site("labelled", "F.cross_entropy(s, k[:, 0], reduction='none')", ("F.nll_loss(torch.log_softmax(s, 1), k[:, 0].abs() % 33, reduction='none')",), whole=_WHOLE),
]
NAMES = {**globals(), "math": math, "torch": torch, "F": F}
