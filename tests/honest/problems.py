# SPDX-License-Identifier: Apache-2.0
"""Small problems of every family, with the shapes and types that trip evaluators.

Each is one line: what `forward` computes from its arguments, how the arguments are
drawn, and the modules it uses. `source` writes it as a problem file.
"""

import dataclasses

_FILE = '''# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
{modules}

    def forward(self, {names}):
        {forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''


@dataclasses.dataclass(frozen=True)
class Problem:
    """One problem; see the module."""

    name: str
    # Statements separated by `; `, the last one a `return`, or one expression.
    forward: str
    inputs: str
    modules: str = "pass"
    # Part of the subset that runs in CI.
    in_ci: bool = False
    # Needs a GPU's memory or types.
    is_for_gpu: bool = False
    # Free memory of the device without which it is left out.
    needs_bytes: int = 0
    precision: str = "kernelbench"
    randomize: bool = False

    @property
    def source(self):
        """Text of the problem file."""
        count = _count(self.inputs)
        forward = self.forward if "return" in self.forward else f"return {self.forward}"
        return _FILE.format(
            modules="\n".join(f"        {line}" for line in self.modules.split("; ")),
            names=", ".join("xyz"[:count]),
            forward="\n        ".join(forward.split("; ")),
            inputs=self.inputs,
        )


def _count(inputs):
    depth, count = 0, 1
    for character in inputs:
        depth += (character in "([") - (character in ")]")
        count += character == "," and depth == 0
    return count


def _of(name, forward, inputs, modules="pass", **fields):
    return Problem(name, forward, inputs, modules, **fields)


PROBLEMS = (
    # Pointwise; odd shapes.
    _of("prime_shape", "torch.tanh(x) * 0.5 + x", "torch.randn(7, 13, 17)", in_ci=True),
    _of("one_element", "torch.exp(x)", "torch.randn(1)", in_ci=True),
    _of("no_dimension", "torch.sigmoid(x) + 1", "torch.randn(())", in_ci=True),
    _of("one_row", "F.silu(x) * x", "torch.randn(1, 1009)", in_ci=True),
    _of("one_column", "F.elu(x) - x", "torch.randn(1009, 1)"),
    _of("many_dimensions", "torch.relu(x) + 1", "torch.randn(2, 3, 1, 5, 2, 3)"),
    _of("broadcast", "x * y + z", "torch.randn(17, 1, 5), torch.randn(9, 1), torch.randn(5)"),
    _of("gelu_chain", "F.gelu(x * 1.5 + 0.1)", "torch.randn(64, 129)", in_ci=True),
    _of("mish", "F.mish(x)", "torch.randn(31, 33)"),
    _of("softplus", "F.softplus(x, beta=2.0)", "torch.randn(31, 33)"),
    _of("hard", "F.hardswish(x) + F.hardtanh(x)", "torch.randn(31, 33)"),
    _of("clamp_where", "torch.where(x > y, x, y * 2).clamp(-1, 1)", "torch.randn(57), torch.randn(57)"),
    # Integers and booleans.
    _of("integers", "x * 3 - y", "torch.randint(-9, 9, (33, 7)), torch.randint(-9, 9, (7,))", in_ci=True),
    _of("small_integers", "x + y", "torch.randint(0, 99, (65,), dtype=torch.int32), torch.randint(0, 99, (65,), dtype=torch.int32)"),
    _of("compare", "x > y", "torch.randn(33, 7), torch.randn(33, 7)", in_ci=True),
    _of("logic", "(x > 0) & (y < 0.5)", "torch.randn(100), torch.randn(100)"),
    _of("argmax", "torch.argmax(x, dim=1)", "torch.randn(37, 101)", in_ci=True),
    _of("any_all", "return (x > 3).any(dim=1), (x > -3).all(dim=1)", "torch.randn(37, 101)"),
    _of("count", "(x > 0).sum(dim=1)", "torch.randn(37, 101)"),
    _of("mask_fill", "x.masked_fill(y > 0, -1.0)", "torch.randn(37, 11), torch.randn(37, 11)"),
    # Several outputs.
    _of("two_outputs", "return x.sum(dim=1), x.mean(dim=0)", "torch.randn(41, 43)", in_ci=True),
    _of("three_outputs", "return x + 1, (x * x).sum(), x > 0", "torch.randn(29, 31)"),
    _of("max_with_index", "return torch.max(x, dim=1)", "torch.randn(29, 31)"),
    # In-place references.
    _of("in_place_add", "x = x.clone(); x.add_(1).mul_(2); return x", "torch.randn(41, 5)", in_ci=True),
    _of("in_place_relu", "F.relu(x * 1.0, inplace=True)", "torch.randn(41, 5)"),
    _of("in_place_slice", "y = x.clone(); y[:, 1:] += x[:, :-1]; return y", "torch.randn(19, 23)"),
    # Views.
    _of("transpose", "x.t().contiguous()", "torch.randn(67, 31)", in_ci=True),
    _of("permute", "x.permute(2, 0, 1) * 2", "torch.randn(7, 11, 13)"),
    _of("slice_step", "x[1::2, :-3] + 1", "torch.randn(21, 19)", in_ci=True),
    _of("flip", "torch.flip(x, [0, 1]) - x", "torch.randn(21, 19)"),
    _of("roll", "torch.roll(x, 3, 1)", "torch.randn(21, 19)"),
    _of("cat", "torch.cat([x, y], dim=1)", "torch.randn(11, 3), torch.randn(11, 8)", in_ci=True),
    _of("stack", "torch.stack([x, y], dim=1)", "torch.randn(11, 3), torch.randn(11, 3)"),
    _of("pad", "F.pad(x, (1, 2, 3, 0))", "torch.randn(11, 3)"),
    _of("expand", "x.expand(5, 9, 3) + 0.5", "torch.randn(9, 3)"),
    _of("chunk", "a, b = x.chunk(2, dim=1); return a * torch.sigmoid(b)", "torch.randn(17, 34)"),
    _of("repeat_interleave", "x.unsqueeze(2).expand(5, 7, 3).reshape(5, 21)", "torch.randn(5, 7)"),
    # Reductions.
    # Under ramps the sum cancels, and what adds in the order of arrival is further away.
    _of("sum_all", "x.sum()", "torch.randn(127, 129)", in_ci=True),
    _of("sum_middle", "x.sum(dim=1)", "torch.randn(7, 101, 13)"),
    _of("mean_keep", "x.mean(dim=(0, 2), keepdim=True)", "torch.randn(7, 101, 13)"),
    _of("amax", "torch.amax(x, dim=0)", "torch.randn(71, 13)"),
    _of("product", "torch.prod(x, dim=1)", "torch.rand(9, 31) + 0.5"),
    _of("variance", "torch.var(x, dim=1)", "torch.randn(9, 311)"),
    _of("norm", "torch.norm(x, dim=1)", "torch.randn(9, 311)"),
    _of("logsumexp", "torch.logsumexp(x, dim=1)", "torch.randn(9, 311)", in_ci=True),
    # Normalizations.
    _of("softmax", "torch.softmax(x, dim=1)", "torch.randn(31, 257)", in_ci=True),
    _of("log_softmax", "torch.log_softmax(x, dim=0)", "torch.randn(31, 257)"),
    _of("layer_norm", "self.n(x)", "torch.randn(31, 257)", "self.n = nn.LayerNorm(257)", in_ci=True, randomize=True),
    _of("group_norm", "self.n(x)", "torch.randn(3, 12, 5, 7)", "self.n = nn.GroupNorm(4, 12)", randomize=True),
    _of("instance_norm", "self.n(x)", "torch.randn(3, 5, 7, 9)", "self.n = nn.InstanceNorm2d(5)"),
    _of("batch_norm", "self.n(x)", "torch.randn(13, 5, 7, 3)", "self.n = nn.BatchNorm2d(5)", in_ci=True, randomize=True),
    _of("rms_norm", "x * torch.rsqrt(x.pow(2).mean(dim=1, keepdim=True) + 1e-5)", "torch.randn(31, 257)"),
    _of("l2_normalize", "F.normalize(x, dim=1)", "torch.randn(31, 257)"),
    # Losses.
    _of("mse", "F.mse_loss(x, y)", "torch.randn(31, 257), torch.randn(31, 257)", in_ci=True),
    _of("smooth_l1", "F.smooth_l1_loss(x, y)", "torch.randn(31, 57), torch.randn(31, 57)"),
    _of("cross_entropy", "F.cross_entropy(x, y)", "torch.randn(31, 57), torch.randint(0, 57, (31,))"),
    _of("divergence", "F.kl_div(torch.log_softmax(x, 1), torch.softmax(y, 1), reduction='batchmean')", "torch.randn(31, 57), torch.randn(31, 57)"),
    _of("cosine", "F.cosine_similarity(x, y, dim=1)", "torch.randn(31, 57), torch.randn(31, 57)"),
    # Contractions.
    _of("matmul_primes", "x @ y", "torch.randn(31, 37), torch.randn(37, 41)", in_ci=True),
    _of("matmul_long", "x @ y", "torch.randn(3, 4099), torch.randn(4099, 5)"),
    _of("batched", "torch.bmm(x, y)", "torch.randn(5, 7, 11), torch.randn(5, 11, 3)"),
    _of("matrix_vector", "x @ y", "torch.randn(131, 257), torch.randn(257)"),
    _of("outer", "torch.outer(x, y)", "torch.randn(31), torch.randn(17)"),
    _of("linear_relu", "torch.relu(self.l(x))", "torch.randn(33, 65)", "self.l = nn.Linear(65, 17)", in_ci=True),
    _of("two_layers", "self.b(torch.tanh(self.a(x)))", "torch.randn(9, 65)", "self.a = nn.Linear(65, 33); self.b = nn.Linear(33, 7)"),
    _of("triangular", "torch.triu(x) @ y", "torch.randn(33, 33), torch.randn(33, 9)"),
    _of("conv1d", "self.c(x)", "torch.randn(3, 5, 41)", "self.c = nn.Conv1d(5, 7, 3, padding=1)"),
    _of("conv2d", "torch.relu(self.c(x))", "torch.randn(2, 3, 17, 19)", "self.c = nn.Conv2d(3, 5, 3, stride=2)", in_ci=True),
    _of("depthwise", "self.c(x)", "torch.randn(2, 6, 17, 19)", "self.c = nn.Conv2d(6, 6, 3, groups=6, dilation=2)"),
    _of("transposed", "self.c(x)", "torch.randn(2, 3, 7, 9)", "self.c = nn.ConvTranspose2d(3, 5, 3, stride=2)"),
    # Windows, scans, gathers, attention.
    _of("max_pool", "self.p(x)", "torch.randn(2, 3, 17, 19)", "self.p = nn.MaxPool2d(3, 2, 1)", in_ci=True),
    _of("average_pool", "self.p(x)", "torch.randn(2, 3, 17, 19)", "self.p = nn.AvgPool2d(3, 2)"),
    _of("global_pool", "F.adaptive_avg_pool2d(x, 1)", "torch.randn(2, 3, 17, 19)"),
    _of("cumulative_sum", "torch.cumsum(x, dim=1)", "torch.randn(13, 301)", in_ci=True),
    _of("embedding", "self.e(x)", "torch.randint(0, 19, (3, 11))", "self.e = nn.Embedding(19, 8)"),
    _of("gather", "torch.gather(x, 1, y)", "torch.randn(11, 19), torch.randint(0, 19, (11, 5))"),
    _of("attention", "F.scaled_dot_product_attention(x, y, z)", "torch.randn(2, 3, 17, 8), torch.randn(2, 3, 17, 8), torch.randn(2, 3, 17, 8)"),
    # Training mode.
    # One that drops nothing: live masks come from a generator that no program shares.
    _of("dropout", "F.dropout(x, 0.0, True) + 1", "torch.randn(33, 65)", in_ci=True),
    # Other types.
    _of("doubles", "torch.exp(x) + 1", "torch.randn(33, 65, dtype=torch.float64)", in_ci=True),
    _of("bf16", "x * 2 + y", "torch.randn(33, 65).bfloat16(), torch.randn(33, 65).bfloat16()", is_for_gpu=True),
    _of("half", "torch.relu(x) + y", "torch.randn(33, 65).half(), torch.randn(33, 65).half()", is_for_gpu=True),
    _of("half_linear", "x @ y", "torch.randn(33, 64).half(), torch.randn(64, 17).half()", is_for_gpu=True),
    # Ill-conditioned, and honest all the same.
    _of("steep_softmax", "torch.softmax(x * 30, dim=1)", "torch.randn(31, 257)", in_ci=True),
    _of("cancelling", "(x + 100).var(dim=1)", "torch.randn(31, 257)"),
    _of("reciprocal", "1 / (x.abs() + 0.01)", "torch.randn(31, 257)"),
    _of("long_scan", "torch.cumsum(x, dim=1)", "torch.randn(2, 5003)", in_ci=True),
    _of("wide_exponent", "torch.exp(x * 5).sum(dim=1)", "torch.randn(31, 257)"),
    _of("power", "torch.pow(x.abs() + 0.1, 2.7)", "torch.randn(31, 257)"),
    # Beyond 32 bits: offsets in bytes, and in elements.
    _of("four_gigabytes", "F.gelu(x)", "torch.randn(1 << 15, 1 << 15)", is_for_gpu=True, needs_bytes=80 << 30),
    _of("many_elements", "torch.relu(x)", "torch.rand((1 << 16) + 1, (1 << 15) + 1, dtype=torch.bfloat16).sub_(0.5)", is_for_gpu=True, needs_bytes=120 << 30),
)
