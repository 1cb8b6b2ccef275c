# SPDX-License-Identifier: Apache-2.0
"""Calls that PyTorch's own samples lack: special values, whole numbers at their ends, empty and
strided tensors, negative dimensions, fused types that wrap.

Each topic has its arguments x, y, z and one expression per result.
"""

import dataclasses

import torch
import torch.nn.functional as F

_SOURCE = """\
import edges
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, {names}):
        return [
            {results},
        ]


def get_inputs():
    return edges.drawn({name!r})


def get_init_inputs():
    return []
"""


@dataclasses.dataclass(frozen=True)
class Edge:
    """One topic; see the module."""

    name: str
    # Expressions of x, y and z.
    arguments: tuple
    results: tuple

    def names(self):
        """Names of the arguments of `forward`."""
        return "xyz"[: len(self.arguments)]

    def tensors(self):
        """The arguments."""
        return drawn(self.name)

    def source(self):
        """The problem file."""
        results = ",\n            ".join(self.results)
        return _SOURCE.format(names=", ".join(self.names()), results=results, name=self.name)


def drawn(name):
    """Arguments of a topic, the same in each call."""
    torch.manual_seed(7)
    scope = {"torch": torch, "F": F, "special": _special, "ends": _ends}
    return [eval(text, scope) for text in EDGES[name].arguments]


def _special(dtype=torch.float32):
    """Every pair of what is special about a floating type, as two columns."""
    values = torch.tensor(
        [0.0, -0.0, 1, -1, 0.5, -2.5, 3.5, torch.inf, -torch.inf, torch.nan, 100, 7.25]
    ).to(dtype)
    return torch.cartesian_prod(values, values)


def _ends(dtype):
    """Every pair of numbers near the ends and the middle of a whole type, as two columns."""
    info = torch.iinfo(dtype)
    values = torch.tensor(
        [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, 100]
        + ([-1, -2, -7, -100] if info.min < 0 else []),
        dtype=dtype,
    )
    return torch.cartesian_prod(values, values)


def _topics():
    for name, arguments, results in _FLOATING + _WHOLE + _SHAPES:
        yield Edge(name, arguments, results)


def _columns(*results):
    return tuple(r.replace("a", "x[:, 0]").replace("b", "x[:, 1]") for r in results)


_PAIR = ("x[:, 0]", "x[:, 1]")

_FLOATING = tuple(
    (f"{what}_{dtype}", (f"special(torch.{dtype})",), results)
    for dtype in ("float32", "float16", "bfloat16", "float64")
    for what, results in (
        ("order", (
            "torch.maximum(x[:, 0], x[:, 1])", "torch.minimum(x[:, 0], x[:, 1])",
            "x[:, 0] < x[:, 1]", "x[:, 0] >= x[:, 1]", "x[:, 0] == x[:, 1]", "x[:, 0] != x[:, 1]",
            "x.amax(1)", "x.amin(1)", "x.max(1)[0]", "x.max(1)[1]", "x.min(1)[1]",
            "x.argmax(1)", "x.argmin(1)", "x.amax(0)", "x.argmin(0)", "x.argmax()",
            "torch.max(x[:, 0], x[:, 1])", "x.max()",
        )),
        ("rounding", (
            "x.floor()", "x.ceil()", "x.trunc()", "x.round()", "x.sign()", "x.abs()", "-x",
            "x.isnan()", "x.isinf()", "x.relu()", "x.logical_not()",
            "torch.where(x.isfinite(), x, 0).to(torch.bool)",
        )),
        ("quotient", (
            "x[:, 0] / x[:, 1]", "torch.remainder(x[:, 0], x[:, 1])",
            "torch.floor_divide(x[:, 0], x[:, 1])",
            "torch.div(x[:, 0], x[:, 1], rounding_mode='trunc')",
            "torch.div(x[:, 0], x[:, 1], rounding_mode='floor')",
            "x % 0.7", "x // 0.1", "x % -3", "x // float('inf')", "5 % x", "x.reciprocal()",
        )),
        ("bound", (
            "x.clamp(-1, 1)", "x.clamp(min=0.1)", "x.clamp(max=-0.1)", "x.clamp(2, 1)",
            "x.clamp(float('nan'), 1)", "x.clamp(x[:, :1], x[:, 1:])", "F.hardtanh(x)",
            "F.relu6(x)", "F.leaky_relu(x, -0.5)", "F.threshold(x, 0.5, 0.1)", "F.hardshrink(x, 0.5)",
            "F.softshrink(x, 0.5)", "x.clamp_min(x[:, :1])",
        )),
        ("number", (
            "x == 0.1", "x > 0.5", "x >= 3.5", "x != 1", "x < 65519.5", "x <= 1e39",
            "x * 1e39", "x + 1e-46", "torch.where(x > 0, x, 0.1)", "x.masked_fill(x > 0, 0.3)",
            "(x * 0.1 == 0.1) | (x / 10 == 0.1)",
        )),
        ("power", (
            "x ** 0", "x ** 1", "x ** 2", "x ** 3", "x.abs() ** 0.5", "x.abs() ** -0.5", "x ** -1", "x ** -2",
            "x ** 1.5", "2 ** x", "0 ** x", "1 ** x", "torch.pow(x[:, 0], x[:, 1])", "x.square()",
        )),
        ("function", (
            "x.exp()", "x.exp2()", "x.expm1()", "x.log()", "x.log2()", "x.log10()", "x.log1p()",
            "x.sqrt()", "x.rsqrt()", "x.tanh()", "x.erf()", "x.sigmoid()", "F.gelu(x)",
            "F.gelu(x, approximate='tanh')", "F.silu(x)", "F.mish(x)", "F.softplus(x)",
            "F.elu(x)", "F.celu(x)", "F.selu(x)", "F.logsigmoid(x)", "F.hardswish(x)",
            "F.hardsigmoid(x)", "F.softsign(x)", "F.tanhshrink(x)",
        )),
        ("row", (
            "x.clamp(max=9).softmax(1)", "x.clamp(max=9).log_softmax(1)", "x.logsumexp(1)", "x.softmax(0)", "x.sum(1)",
            "x.mean(1)", "x.prod(1)", "x.any(1)", "x.all(1)", "x.cumsum(1)", "x.cumprod(1)",
            "x.norm(dim=1)", "x.norm(1, 1)", "x.norm(0, 1)", "x.norm(float('inf'), 1)",
            "x.norm(float('-inf'), 1)", "x.norm(3, 1)", "x.var(1)", "x.std(0)",
        )),
        ("between", (
            "torch.lerp(x[:, 0], x[:, 1], 1.0)", "torch.lerp(x[:, 0], x[:, 1], 0.25)",
            "torch.lerp(x[:, 0], x[:, 1], 0.75)",
            "torch.addcmul(x[:, 0], x[:, 0], x[:, 1], value=0.5)",
            "torch.addcdiv(x[:, 0], x[:, 0], x[:, 1], value=0.5)",
            "F.smooth_l1_loss(x[:, 0], x[:, 1], reduction='none')",
            "F.huber_loss(x[:, 0], x[:, 1], reduction='none')",
            "F.l1_loss(x[:, 0], x[:, 1], reduction='none')",
        )),
    )
)

_WHOLE = tuple(
    (f"{what}_{dtype}", (f"ends(torch.{dtype})",), results)
    for dtype in ("int64", "int32", "int16", "int8", "uint8")
    for what, results in (
        ("sum", (
            "x[:, 0] + x[:, 1]", "x[:, 0] - x[:, 1]", "x[:, 0] * x[:, 1]", "x + 1000", "7 - x",
            "x[:, 0] + x[:, 1] > 0", "(x[:, 0] - x[:, 1]) // 2", "(x * x).float()",
            "-x", "x.abs()", "x.sign()", "x.square()", "x[:, 0].mul(3).sub(x[:, 1], alpha=2)",
            "torch.addcmul(x[:, 0], x[:, 0], x[:, 1], value=2)", "x.sum(1)", "x.prod(1)",
            "x.sum(1, dtype=x.dtype)", "x.cumsum(1)", "x.cumsum(0)", "x.sum()",
        )),
        ("quotient", (
            "x[:, 0] // (x[:, 1] | 1)", "x[:, 0] % (x[:, 1] | 1)", "x // 7", "x % 7", "x % 16",
            "x // 16", "x / 3", "x // -3" if dtype != "uint8" else "x // 3",
            "x % -5" if dtype != "uint8" else "x % 5", "x / x[:, :1].float()",
            "torch.div(x, 7, rounding_mode='trunc')",
        )),
        ("order", (
            "torch.maximum(x[:, 0], x[:, 1])", "x[:, 0] < x[:, 1]", "x.clamp(-3, 50)",
            "x.clamp(max=5)", "x.amax(1)", "x.max(1)[1]", "x.argmin(1)", "x.amin(0)", "x.argmax()",
            "x > 0.5", "x == 2", "x.clamp(min=0.5)", "x >= x[:, :1].half()", "x.bool()",
            "torch.where(x > 5, x, 3)", "torch.where(x > 5, x, 2.5)", "x.relu()",
        )),
        ("bits", (
            "x[:, 0] & x[:, 1]", "x[:, 0] | x[:, 1]", "x[:, 0] ^ x[:, 1]", "~x", "x & 6",
            "x.logical_and(x[:, :1])", "x.logical_xor(x[:, :1])", "x.logical_not()",
            "(x & 1).bool()", "x.any(1)", "x.all(1)",
        )),
        ("power", (
            "(x % 7) ** 0", "(x % 7) ** 1", "(x % 7) ** 2", "(x % 7) ** 3", "(x % 7) ** 5",
            "(x % 7) ** 23", "x ** 4", "x ** 0.5", "2 ** (x % 5).float()",
        )),
        ("type", (
            "x.float()", "x.half()", "x.bfloat16()", "x.double()", "x.to(torch.int32)",
            "x.to(torch.int8)", "x.to(torch.uint8)", "x.to(torch.int16)", "x.to(torch.int64)",
            "x + 1.5", "x * True", "x + x.to(torch.int8)", "x.float() + x",
            "x.to(torch.int8) + x.to(torch.uint8)",
        )),
    )
) + (
    ("indices", ("torch.randn(10)", "torch.tensor([-3, 2, -1, 4, 3, -7, 5, 1, -2, 6])"), (
        "torch.arange(-5, 5) // 2 + y", "torch.arange(-5, 5) % 3 + y", "torch.arange(10) // y",
        "torch.arange(10) % y", "(torch.arange(10) - 5) % 3 * x", "(torch.arange(10) - 5) // 3 * x",
        "(torch.arange(10)[None] - torch.arange(10)[:, None]) // 4 * x",
        "(torch.arange(10)[None] - torch.arange(10)[:, None]).abs() % 4 * x",
        "torch.arange(10) // -3 + y", "torch.arange(10) % -3 + y", "x[(torch.arange(10) - 5) % 10]",
        "x[-torch.arange(1, 11)]", "x[y]", "x[y % 10]", "(y.bool().long() - 1) // 2",
        "torch.div(torch.arange(-5, 5), 2, rounding_mode='trunc') + y",
        "(2 ** 40 + torch.arange(10)) * x.double()", "y + 2 ** 40", "y * 2 ** 33 // 3",
        "torch.arange(10).neg().clamp(min=-3) + y", "torch.full((10,), 2 ** 53 + 1) + y",
        "torch.arange(2 ** 33, 2 ** 33 + 10) + y", "(torch.arange(10) - 5) * 2 ** 31 // 7 + y",
        "torch.arange(10).flip(0) // 3 * x", "torch.arange(100).view(10, 10).T // 7 * x",
    )),
    ("truth", ("torch.rand(4, 6) > 0.5", "torch.rand(4, 1) > 0.5"), (
        "x + y", "x * y", "x + 1", "x * 2.5", "x & y", "x ^ y", "~x", "x > y", "x <= y",
        "x == y", "x.sum(1)", "x.sum()", "x.cumsum(1)", "x.prod(1)", "x.float().mean(1)",
        "x.any()", "x.all(1)", "x.any(0, keepdim=True)", "torch.where(x, y, ~y)",
        "torch.maximum(x, y)", "x.amax(1)", "x.long().argmax(1)", "x.logical_xor(y)", "x ** 2",
        "x.masked_fill(y, True)", "x.to(torch.uint8) + x.to(torch.uint8)", "x / 2",
        "x.int() - y.int()", "x | 4", "x + x + x", "(x + y).float()", "(x * y).sum(1)",
        "x.max(1)[0]", "x.norm() if False else x.float().norm()", "x.cumprod(1)",
        "torch.cat([x, y], 1)", "x.tril()", "F.pad(x, (1, 1), value=True)", "x.clone().flip(1)",
        "torch.stack([x, x.logical_not()]).all(0)", "F.one_hot(x.long(), 2)",
    )),
    ("narrow", ("torch.randn(64)", "torch.randn(64, dtype=torch.float64)"), (
        "x - x.half().float()", "x - x.bfloat16().float()", "x.half() + x.bfloat16()",
        "y - y.float()", "(x * 3).long() / 2",
        "(x.half() * 0.1).float() == x * 0.1", "x.half() * y", "y.float() * 1e-3", "y.erf()",
        "y.sigmoid()", "y.tanh()", "F.gelu(y)", "y.log1p() - y", "F.rms_norm(y * 1e-6, (64,))",
        "F.layer_norm(y, (64,))", "y.softmax(0)", "y.logsumexp(0)", "y.var()", "y.norm()",
        "(y * 3).int().double()", "F.mish(y)", "F.softplus(y * 9)", "F.silu(y)",
        "torch.arange(0, 6.4, 0.1, dtype=torch.float64) * y", "y ** 2.5", "y.abs() ** 0.3",
        "F.rms_norm(x.half() * 1e-4, (64,))", "torch.arange(3000, dtype=torch.bfloat16)[::50] * 1",
        "torch.arange(0, 3000, 0.5, dtype=torch.float16)[::101] * 1",
        "torch.full((64,), 0.1, dtype=torch.float64) * y", "y + 0.1", "y * (1 / 3)", "x.double() + 0.1",
    )),
)

_SHAPES = (
    ("empty", ("torch.randn(0, 5)", "torch.randn(3, 0)", "torch.randn(5, 4)"), (
        "x + 1", "x.sum(0)", "x.sum(1)", "x.mean(0)", "y.sum(1)", "y.prod(1)", "y.any(1)",
        "y.all(1)", "x @ z", "y @ x.T.new_zeros(0, 2)", "x.softmax(1)", "y.softmax(1)",
        "torch.cat([x, z.T], 0)", "y.cumsum(1)", "F.relu(x)", "F.pad(x, (1, 1))",
        "F.pad(y, (1, 1), value=2.)", "y.norm(dim=1)", "y.sum()", "y.mean()", "x.amax(1)",
        "F.layer_norm(x, (5,))", "F.linear(x, z.T)", "z[:0] * 2", "z[2:2].sum(0)", "y.logsumexp(1)",
        "x.transpose(0, 1) + 1", "torch.stack([x, x])", "x.repeat(2, 3)", "z.repeat(0, 1) + 1",
        "F.embedding(torch.zeros(0, dtype=torch.long), z)", "x.var(1)", "y.T.flip(0)",
        "torch.einsum('ij,jk->ik', x, z)", "x.view(0, 5, 1) + x.view(0, 1, 5)", "y.std(1)",
    )),
    ("single", ("torch.randn(1, 1, 1)", "torch.randn(())", "torch.randn(1)"), (
        "x + y", "x * z", "y.exp()", "y.sum()", "y.sum(0)", "y.sum(-1)", "x.sum(-3)", "x.mean((0, 2))",
        "y.softmax(0)", "y.softmax(-1)", "y.amax()", "y.amax(-1)", "y.max()", "y.argmax()",
        "y.max(0)[0]", "y.max(-1)[1]", "y.cumsum(0)", "y.cumprod(-1)", "z.var(0)", "y.var()", "y.std(0)",
        "y.norm()", "y.norm(0)", "y.logsumexp(0)", "y.log_softmax(0)", "z @ z", "x @ x", "z.dot(z)",
        "torch.outer(z, z)", "F.layer_norm(x, (1,))", "F.layer_norm(x, (1, 1, 1))", "y.expand(2, 3)",
        "y.unsqueeze(-1)", "y.reshape(1, 1)", "x.squeeze()", "x.squeeze(-2)", "y.flip(())",
        "torch.stack([y, y], -1)", "y.any()", "y.all(0)", "x.repeat(2, 1, 3)", "y.repeat(3)",
        "torch.cat([z, z], -1)", "z.roll(1)", "z.roll(3, -1)", "y.flatten()", "x.flatten()",
        "F.max_pool2d(x, 1)", "F.avg_pool1d(x, 1)", "F.adaptive_avg_pool1d(x, 3)", "x.tril()",
        "F.conv1d(x, x)", "F.interpolate(x, scale_factor=3)", "y.where(y > 0, y)", "y.clamp(0, 1)",
        "F.embedding(torch.tensor(0), x[0])", "y.prod()", "y.mean(0)",
    )),
    ("strided", ("torch.randn(6, 7, 8)", "torch.randn(8, 6)"), (
        "x.transpose(0, 2) * 2", "x.transpose(0, 2).sum(-1)", "x[::2, 1::3, ::-1 if False else 2].exp()",
        "x.flip(-1)[..., ::3].softmax(-1)", "x.permute(2, 0, 1).softmax(-2)", "x.permute(2, 0, 1).reshape(8, -1) * 2",
        "x.transpose(0, 1).contiguous().view(-1, 8).cumsum(-2)", "x[:, -1].T @ x[:, 0]",
        "x @ y", "x.unfold(1, 3, 2).mean(-1)", "x.diagonal(0, 0, 1).sum(-1)",
        "x.diagonal(-2, 1, 2).exp()", "x[..., -3:].amax((-1, -3))", "y.T.softmax(0)", "y[:, None].expand(8, 4, 6).sum(-2)",
        "x.transpose(0, 2)[1:-1].norm(dim=-3)", "x.swapaxes(-1, 0).argmax(-2)", "x.T.mean(0) if False else x.mT.mean(0)",
        "x.expand(2, 6, 7, 8).sum(0)", "x.movedim(-1, 0) + y[:, :, None]", "x.roll((1, -2), (-1, 0))",
        "x.view(6, 56).chunk(3, -1)[1].exp()", "x.view(42, 8)[::5].cumsum(-1)", "F.layer_norm(x.transpose(0, 2), (7, 6))",
        "F.pad(x.transpose(1, 2), (-1, 2, 3, -2)).sum(-2)", "torch.cat([x[:, :3], x[:, -2:]], -2).prod(-2)",
        "x.flatten(-2).tril(-1)", "x.flatten(0, -2).triu(2)", "x.select(-2, -3).exp()", "x.narrow(-1, -4, 3).sum(-1)",
        "x.split([2, 3, 2], -2)[1].mean(-2)", "x.unbind(-1)[-2].exp()", "x.unflatten(-1, (2, -1)).amax(-2)",
        "torch.stack([x, x], -2).sum(-3)", "x.transpose(0, 1).index_select(-1, torch.tensor([7, 0, 7])).exp()",
        "x.gather(-2, x.argmax(-2, keepdim=True))", "x[torch.tensor([0, -1])][:, :, torch.tensor([-8, 3])]",
        "x.repeat_interleave(2, -2).sum(-1)", "torch.tile(y, (2, 1, 3)).exp()", "F.avg_pool1d(x.transpose(1, 2), 3, 2, 1)",
        "x.std((-1, 0))", "x.var(-2, unbiased=False, keepdim=True)", "x.cumprod(-3)", "torch.einsum('abc,cd->dba', x, y)",
        "F.cross_entropy(x.flatten(0, 1), torch.arange(42) % 8, ignore_index=3)", "x.logsumexp((-1, 0))",
    )),
    ("masked", ("torch.randn(4, 9)", "torch.zeros(4, 9).masked_fill(torch.tril(torch.ones(4, 9)) == 0, float('-inf'))"), (
        "(x + y).softmax(-1)", "(x + y).log_softmax(-1)", "(x + y).logsumexp(-1)", "(y - float('inf')).softmax(-1)",
        "(x + y).amax(-1)", "(x + y).exp().sum(-1)", "(y - float('inf')).logsumexp(-1)", "(x - y).logsumexp(0)",
        "F.softmin(x - y, -1)", "(y[:, 3:] + x[:, 3:]).softmax(0)", "(x + y).softmax(-1).nan_to_num() @ x.T",
        "(y - float('inf')).log_softmax(0)", "(x + y).argmax(-1)", "(x + y).max(0)[0]", "torch.logsumexp(y, (0, 1))",
    )),
)

EDGES = {edge.name: edge for edge in _topics()}
