# SPDX-License-Identifier: Apache-2.0
"""Traces small modules and writes what PyTorch computes for them.

One JSON object per line: name, graph (mtmc.v1.Graph), inputs and outputs as flat
lists by value name. Outputs are computed in fp64, so that only the meaning of an
operation is compared and not its rounding. Needs worker/reference on PYTHONPATH.
"""

import copy
import json
import math
import sys
import types

import torch
import torch.nn as nn
import torch.nn.functional as F

from mtmc_reference.trace import trace

CASES = {}


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def case(name, module, *inputs):
    CASES[name] = (module if isinstance(module, nn.Module) else Function(module), inputs)


def randn(*shape):
    return torch.randn(shape)


def pointwise_cases():
    x, y = randn(3, 5), randn(5)
    positive = randn(3, 5).abs() + 0.1
    unary = [
        "abs", "neg", "exp", "exp2", "expm1", "sin", "cos", "tan", "tanh", "erf", "sigmoid",
        "floor", "ceil", "trunc", "round", "sign", "square", "reciprocal",
    ]
    for name in unary:
        case(name, getattr(torch, name), x)
    for name in ["log", "log2", "log1p", "log10", "sqrt", "rsqrt"]:
        case(name, getattr(torch, name), positive)
    case("add_bool", lambda a, b: (a > 0) + (b > 0), x, y)
    case("add_alpha", lambda a, b: torch.add(a, b, alpha=2.5), x, y)
    case("sub", lambda a, b: torch.sub(a, b, alpha=0.5), x, y)
    case("rsub", lambda a: 2 - a, x)
    case("mul_scalar", lambda a: a * 3 + 1, x)
    case("div", lambda a, b: a / b / 3, x, positive)
    case("div_floor", lambda a, b: torch.div(a, b, rounding_mode="floor"), x, positive)
    case("remainder", lambda a: torch.remainder(a, 0.7), x)
    # What is special about numbers, in every pair.
    special = torch.tensor([0.0, 1, -1, 0.5, -2.5, 7.25, math.inf, -math.inf, math.nan])
    pairs = torch.cartesian_prod(special, special).unbind(1)
    case("remainder_special", torch.remainder, *pairs)
    case("remainder_exact", lambda a: torch.remainder(a, 0.1), torch.arange(9.0) * 1e5)
    case("floor_divide_special", torch.floor_divide, *pairs)
    case("floor_divide_exact", lambda a: a // 0.1, torch.arange(9.0))
    case("lerp_far", lambda a, b: torch.lerp(a * 1e30, b, 1.0), x, y)
    case("lerp_weights", torch.lerp, x, x.flip(0), torch.linspace(-1, 2, 5))
    case("clamp_nan", lambda a: torch.clamp(a, math.nan, 1.0), x)
    case("logsumexp_nan", lambda a: a.logsumexp(1), torch.tensor([[1, math.nan], [-math.inf, math.nan]]))
    case("pow_2", lambda a: a**2 + a**3, x)
    case("pow_half", lambda a: a**0.5 + a**-0.5 + a**1.7, positive)
    case("pow_tensor", lambda a, b: a**b, positive, x)
    case("pow_base", lambda a: 2**a, x)
    case("maximum", lambda a, b: torch.maximum(a, b) + torch.minimum(a, b), x, y)
    case("compare", lambda a, b: (a > b) & (a >= 0) | (a < -1) | (a == b), x, y)
    case("where", lambda a, b: torch.where(a > 0, a, b), x, y)
    case("where_scalar", lambda a: torch.where(a <= 0, a, 0.0), x)
    case("masked_fill", lambda a: a.masked_fill(a > 0.5, -3.0), x)
    case("logical", lambda a, b: torch.logical_not(torch.logical_and(a, b) ^ (a != b)), x, y)
    case("clamp", lambda a: torch.clamp(a, -0.5, 0.7) + torch.clamp(a, min=0.1), x)
    case("clamp_tensor", lambda a, b: torch.clamp(a, min=b), x, y)
    case("lerp", lambda a, b: torch.lerp(a, b, 0.3), x, y)
    case("addcmul", lambda a, b: torch.addcmul(a, a, b, value=0.3), x, x.flip(0))
    case("integers", lambda i, j: i * j - (i // 3) + i % 4, torch.arange(-6, 6), torch.arange(12))
    case("pow_whole", lambda i: (i**0) + (i**7) - (i**13), torch.arange(-6, 6))
    case("bitwise_not", lambda i: ~i, torch.arange(-6, 6))
    case("full_whole", lambda i: i - torch.full((12,), 2**53 - 1), torch.arange(12))
    case("promote", lambda a, i: (a > i).float() + a * i, x, torch.arange(5))
    case("isnan", lambda a: torch.isnan(torch.log(a)) | torch.isinf(a / 0), x)


def activation_cases():
    x = randn(4, 6) * 3
    names = [
        "relu", "relu6", "gelu", "silu", "mish", "hardswish", "hardsigmoid", "hardtanh",
        "leaky_relu", "elu", "selu", "celu", "softplus", "softsign", "logsigmoid", "tanhshrink",
        "hardshrink", "softshrink",
    ]
    for name in names:
        case(name, getattr(F, name), x)
    case("gelu_tanh", lambda a: F.gelu(a, approximate="tanh"), x)
    case("softplus_beta", lambda a: F.softplus(a, beta=2.0, threshold=5.0), x)
    case("elu_alpha", lambda a: F.elu(a, alpha=0.7), x)
    case("threshold", lambda a: F.threshold(a, 0.2, -7.0), x)
    case("hardtanh_bounds", lambda a: F.hardtanh(a, -2.0, 1.5), x)
    case("prelu", nn.PReLU(6), x)
    case("glu", lambda a: F.glu(a, dim=1), x)
    case("new_gelu", lambda a: 0.5 * a * (1 + torch.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))), x)


def view_cases():
    x = randn(2, 3, 4)
    case("view", lambda a: a.view(6, 4).view(2, 12).reshape(-1, 2, 6), x)
    case("flatten", lambda a: torch.flatten(a, 1), x)
    case("permute", lambda a: a.permute(2, 0, 1).contiguous() + 0, x)
    case("transpose_view", lambda a: a.transpose(1, 2).contiguous().view(2, -1), x)
    case("t", lambda a: a.t(), randn(3, 5))
    case("expand", lambda a: a[:, :1].expand(-1, 7, -1), x)
    case("squeeze", lambda a: a.unsqueeze(1).unsqueeze(-1).squeeze(1), x)
    case("slice", lambda a: a[:, 1:, ::2] + a[:, :-1, 1::2], x)
    case("select", lambda a: a[:, -1] + a.select(1, 0), x)
    case("narrow", lambda a: a.narrow(2, 1, 2), x)
    case("chunk", lambda a: torch.cat(torch.chunk(a, 2, dim=2)[::-1], dim=0), x)
    case("split", lambda a: torch.split(a, [1, 2], dim=1)[1], x)
    case("unbind", lambda a: torch.stack(torch.unbind(a, 1), dim=-1), x)
    case("cat", lambda a, b: torch.cat([a, b, a], dim=1), x, randn(2, 2, 4))
    case("stack", lambda a: torch.stack([a, a * 2], dim=1), x)
    case("pad", lambda a: F.pad(a, (1, 2, 0, 3), value=1.5), x)
    case("pad_reflect", lambda a: F.pad(a, (2, 1), mode="reflect"), x)
    case("pad_replicate", lambda a: F.pad(a, (2, 3), mode="replicate"), x)
    case("pad_circular", lambda a: F.pad(a, (2, 1), mode="circular"), x)
    case("flip", lambda a: torch.flip(a, [0, 2]), x)
    case("roll", lambda a: torch.roll(a, (1, -2), (0, 2)) + torch.roll(a, 5), x)
    case("repeat", lambda a: a.repeat(2, 1, 3), x)
    case("repeat_interleave", lambda a: a.repeat_interleave(3, dim=1), x)
    case("triangle", lambda a: torch.tril(a) + torch.triu(a, 1) * 2 + torch.tril(a, -1), randn(4, 5))
    case("diag", lambda a: torch.diag(a), randn(5))
    case("diag_matrix", lambda a: torch.diag(a, 1), randn(5, 5))
    case("diagonal", lambda a: torch.diagonal(a, -1, 1, 2), randn(2, 4, 4))
    case("upsample", lambda a: F.interpolate(a, scale_factor=2), randn(1, 2, 3, 3))
    case("pixel_shuffle", lambda a: F.pixel_shuffle(a, 2), randn(1, 8, 2, 3))
    case("channel_shuffle", lambda a: F.channel_shuffle(a, 3), randn(1, 6, 2, 2))
    case("creation", lambda a: a + torch.ones(4) * 2 + torch.arange(4) + torch.full((3, 1), 0.5), x)
    case("eye", lambda a: a + torch.eye(4), randn(4, 4))


def reduction_cases():
    x = randn(3, 4, 5)
    for name in ["sum", "mean", "amax", "amin", "logsumexp"]:
        case(name, lambda a, f=getattr(torch, name): f(a, dim=1), x)
        case(f"{name}_keepdim", lambda a, f=getattr(torch, name): f(a, dim=(0, 2), keepdim=True), x)
    case("sum_all", lambda a: a.sum() + a.mean(), x)
    case("prod", lambda a: torch.prod(a, dim=1), x)
    case("max_dim", lambda a: torch.max(a, dim=1), x)
    case("min_dim", lambda a: torch.min(a, dim=2, keepdim=True)[0], x)
    case("max_all", lambda a: torch.max(a) + torch.min(a), x)
    case("max_pair", lambda a: torch.max(a, a.flip(1)), x)
    case("argmax", lambda a: torch.argmax(a, dim=1), x)
    case("argmin_all", lambda a: torch.argmin(a), x)
    case("any", lambda a: torch.any(a > 1, dim=1), x)
    case("all", lambda a: torch.all(a > -1, dim=2), x)
    case("var", lambda a: torch.var(a, dim=1, unbiased=False), x)
    case("std", lambda a: torch.std(a, dim=(1, 2), keepdim=True), x)
    case("var_mean", lambda a: torch.var_mean(a, dim=1), x)
    for order in [1, 2, 3, math.inf, -math.inf, 0]:
        case(f"norm_{order}", lambda a, o=order: torch.norm(a, p=o, dim=1, keepdim=True), x)
    case("norm_fro", lambda a: a / torch.norm(a, p="fro"), x)
    case("normalize", lambda a: F.normalize(a, dim=1), x)
    case("cumsum", lambda a: torch.cumsum(a, dim=1), x)
    case("cumprod", lambda a: torch.cumprod(a, dim=0), x)
    case("cumsum_reverse", lambda a: torch.cumsum(a.flip(1), dim=1).flip(1), x)
    case("cumsum_exclusive", lambda a: torch.cumsum(torch.cat((torch.zeros_like(a.select(1, 0).unsqueeze(1)), a), dim=1), dim=1)[:, :-1], x)
    case("cumsum_masked", lambda a: torch.cumsum(a * (a > 0), dim=1), x)


def norm_cases():
    x = randn(2, 6, 3, 4)
    case("softmax", lambda a: F.softmax(a, dim=1), x)
    case("log_softmax", lambda a: F.log_softmax(a, dim=-1), x)
    case("layer_norm", randomized(nn.LayerNorm([3, 4])), x)
    case("layer_norm_plain", lambda a: F.layer_norm(a, [4]), x)
    case("group_norm", randomized(nn.GroupNorm(3, 6)), x)
    case("instance_norm", randomized(nn.InstanceNorm2d(6, affine=True)), x)
    case("batch_norm", randomized(nn.BatchNorm2d(6)), x)
    case("batch_norm_1d", randomized(nn.BatchNorm1d(5)), randn(7, 5))
    case("batch_norm_eval", randomized(nn.BatchNorm2d(6)).eval(), x)
    case("rms_norm", randomized(nn.RMSNorm(4, eps=1e-4)), x)
    case("rms_norm_written", lambda a: a / torch.sqrt(torch.mean(a**2, dim=1, keepdim=True) + 1e-5), x)


def randomized(module):
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module


def loss_cases():
    x, y = randn(5, 4), randn(5, 4)
    labels = torch.tensor([0, 3, 1, 2, 3])
    probability = torch.softmax(y, 1)
    case("mse", F.mse_loss, x, y)
    case("mse_none", lambda a, b: F.mse_loss(a, b, reduction="none"), x, y)
    case("l1", lambda a, b: F.l1_loss(a, b, reduction="sum"), x, y)
    case("smooth_l1", lambda a, b: F.smooth_l1_loss(a, b, beta=0.5), x, y)
    case("huber", lambda a, b: F.huber_loss(a, b, delta=0.7), x, y)
    case("kl_div", lambda a, b: F.kl_div(a, b, reduction="batchmean"), x, probability)
    case("kl_div_log", lambda a, b: F.kl_div(a, b, reduction="sum", log_target=True), x, y)
    case("bce", F.binary_cross_entropy, torch.sigmoid(x), probability)
    case("bce_logits", F.binary_cross_entropy_with_logits, x, probability)
    case("hinge", lambda a, b: torch.mean(torch.clamp(1 - a * b, min=0)), x, y.sign())
    case("hinge_embedding", F.hinge_embedding_loss, x, y.sign())
    case("cross_entropy", F.cross_entropy, x, labels)
    case("cross_entropy_ignore", lambda a, b: F.cross_entropy(a, b, ignore_index=3), x, labels)
    case("cross_entropy_sum", lambda a, b: F.cross_entropy(a, b, reduction="sum"), x, labels)
    case("cross_entropy_images", F.cross_entropy, randn(2, 4, 3), torch.tensor([[0, 1, 3], [2, 2, 1]]))
    case("nll", lambda a, b: F.nll_loss(F.log_softmax(a, 1), b), x, labels)
    case("cosine", lambda a, b: F.cosine_similarity(a, b, dim=1), x, y)
    case("pairwise", F.pairwise_distance, x, y)
    case("triplet", F.triplet_margin_loss, x, y, randn(5, 4))


def contraction_cases():
    a, b = randn(3, 4), randn(4, 5)
    case("mm", torch.mm, a, b)
    case("bmm", torch.bmm, randn(2, 3, 4), randn(2, 4, 5))
    case("matmul_broadcast", torch.matmul, randn(2, 1, 3, 4), randn(3, 4, 2))
    case("matmul_vector", torch.matmul, a, randn(4))
    case("vector_matmul", torch.matmul, randn(3), a)
    case("dot", torch.matmul, randn(6), randn(6))
    case("matmul_3d_2d", torch.matmul, randn(2, 3, 4), b)
    case("addmm", lambda i, l, r: torch.addmm(i, l, r, beta=0.5, alpha=2), randn(5), a, b)
    case("baddbmm", torch.baddbmm, randn(2, 3, 5), randn(2, 3, 4), randn(2, 4, 5))
    case("linear", nn.Linear(4, 6), randn(2, 3, 4))
    case("linear_plain", nn.Linear(4, 6, bias=False), randn(3, 4))
    case("einsum", lambda l, r: torch.einsum("bijl,lk->bijk", l, r), randn(2, 2, 3, 4), randn(4, 5))
    case("einsum_outer", lambda l, r: torch.einsum("i,j->ij", l, r), randn(3), randn(4))
    case("einsum_sum", lambda l: torch.einsum("ijk->ik", l), randn(3, 2, 4))
    case("matmul_transposed", lambda l, r: torch.matmul(l.T, r.T), randn(4, 3), randn(5, 4))
    case("conv1d", nn.Conv1d(4, 6, 3, stride=2, padding=1), randn(2, 4, 9))
    case("conv2d", nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), bias=False), randn(2, 4, 7, 6))
    case("conv2d_groups", nn.Conv2d(4, 8, 3, groups=2, dilation=2, padding=2), randn(1, 4, 6, 6))
    case("conv2d_same", nn.Conv2d(2, 3, 4, padding="same"), randn(1, 2, 5, 5))
    case("depthwise", nn.Conv2d(4, 4, 3, groups=4, padding=1), randn(1, 4, 5, 5))
    case("conv3d", nn.Conv3d(2, 3, 2, padding=1), randn(1, 2, 3, 3, 3))
    case("conv_transpose1d", nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1), randn(2, 4, 5))
    case("conv_transpose2d", nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), randn(1, 4, 4, 3))
    case("conv_transpose2d_dilated", nn.ConvTranspose2d(2, 3, 3, dilation=2, bias=False), randn(1, 2, 4, 3))
    case("conv_transpose3d", nn.ConvTranspose3d(2, 2, 2, stride=2), randn(1, 2, 2, 3, 2))
    q, k, v = randn(2, 2, 5, 4), randn(2, 2, 6, 4), randn(2, 2, 6, 3)
    case("attention", F.scaled_dot_product_attention, q, k, v)
    case("attention_causal", lambda l, r: F.scaled_dot_product_attention(l, r, r, is_causal=True), q, q.flip(0))
    case("attention_mask", lambda l, r, m: F.scaled_dot_product_attention(l, r, r, attn_mask=m), q, k, randn(5, 6))


def window_cases():
    x = randn(2, 3, 7, 8)
    case("max_pool1d", lambda a: F.max_pool1d(a, 3, stride=2, padding=1, dilation=2), randn(2, 3, 11))
    case("max_pool2d", lambda a: F.max_pool2d(a, 3, stride=2, padding=1), x)
    case("max_pool2d_ceil", lambda a: F.max_pool2d(a, 2, ceil_mode=True), x)
    case("max_pool2d_indices", lambda a: F.max_pool2d(a, 3, stride=2, padding=1, return_indices=True), x)
    case("max_pool3d", lambda a: F.max_pool3d(a, 2), randn(1, 2, 4, 4, 5))
    case("avg_pool1d", lambda a: F.avg_pool1d(a, 4, stride=1, padding=2), randn(2, 3, 9))
    case("avg_pool2d", lambda a: F.avg_pool2d(a, 3, stride=2, padding=1, count_include_pad=False), x)
    case("avg_pool2d_ceil", lambda a: F.avg_pool2d(a, 3, stride=2, ceil_mode=True), x)
    case("avg_pool3d", lambda a: F.avg_pool3d(a, 2), randn(1, 2, 4, 4, 5))
    case("adaptive_avg", lambda a: F.adaptive_avg_pool2d(a, (1, 4)), x)
    case("adaptive_avg_uneven", lambda a: F.adaptive_avg_pool2d(a, (3, 5)), x)
    case("adaptive_max", lambda a: F.adaptive_max_pool2d(a, (7, 2)), x)


def index_cases():
    case("embedding", nn.Embedding(7, 4), torch.tensor([[0, 6, 3], [2, 2, 1]]))
    case("gather", lambda a, i: torch.gather(a, 1, i), randn(3, 5), torch.tensor([[0, 4], [1, 1], [3, 2]]))
    case("index_select", lambda a, i: torch.index_select(a, 1, i), randn(3, 5), torch.tensor([4, 0, 0]))
    case("index", lambda a, i: a[i] + a[i, :], randn(4, 3), torch.tensor([[1, -1], [0, 3]]))
    case("one_hot", lambda i: F.one_hot(i, 5), torch.tensor([1, 4, 0]))


def flat(tensor):
    values = tensor.detach().double().flatten().tolist()
    return [v if math.isfinite(v) else str(v) for v in values]


def widen(value):
    return value.double() if value.is_floating_point() else value


def write(name, module, inputs, stream):
    problem = types.SimpleNamespace(
        path=__file__,
        source="",
        module=sys.modules[__name__],
        call=lambda function, *arguments: function(*arguments),
        describe_arguments=lambda forms: [],
        failure_of=lambda error: error,
    )
    graph, constants, _ = trace(problem, module, inputs)
    state = dict(module.named_parameters()) | dict(module.named_buffers()) | constants
    tensors = {}
    for entry in graph["inputs"]:
        is_user = entry["kind"] == "KIND_USER_INPUT"
        value = inputs[entry.get("argumentIndex", 0)] if is_user else state[entry["target"]]
        tensors[entry["name"]] = flat(value)
    wide = copy.deepcopy(module).double()
    with torch.no_grad():
        results = wide(*[widen(value) for value in inputs])
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    mutated = dict(wide.named_buffers())
    outputs = {}
    for entry in graph["outputs"]:
        is_user = entry["kind"] == "KIND_USER_OUTPUT"
        outputs[entry["value"]] = flat(results.pop(0) if is_user else mutated[entry["target"]])
    line = {"name": name, "graph": graph, "inputs": tensors, "outputs": outputs}
    stream.write(json.dumps(line) + "\n")


def main(path):
    torch.manual_seed(0)
    pointwise_cases()
    activation_cases()
    view_cases()
    reduction_cases()
    norm_cases()
    loss_cases()
    contraction_cases()
    window_cases()
    index_cases()
    with open(path, "w", encoding="utf-8") as stream:
        for name, (module, inputs) in CASES.items():
            try:
                write(name, module, inputs, stream)
            except BaseException as error:
                raise RuntimeError(f"case {name}: {error}") from error


if __name__ == "__main__":
    main(sys.argv[1])
