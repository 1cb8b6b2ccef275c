# SPDX-License-Identifier: Apache-2.0
"""Random problems, with programs that compute them honestly and programs that do not."""

import dataclasses

import torch
from fairness import HALF, KERNELBENCH, STRICT, TF32
from fairness_programs import (
    SUMS,
    fast_divide,
    fast_exp,
    flushed,
    in_fp16,
    in_order,
    in_parts,
    last_columns_of_others,
    result_in_fp16,
    skipped_row,
    zeroed,
)

from mtmc_reference.tensor_core import rounded


@dataclasses.dataclass
class Problem:
    """A reference, its inputs, and programs: (name, function, class) or (name, function)."""

    name: str
    function: callable
    inputs: list
    honest: list
    dishonest: list


def _shape(random, least=64, most=400):
    return random.randint(5, 40), random.randint(least, most)


def _floats(random, *shape):
    kind = random.choice(["randn", "rand", "large"])
    if kind == "rand":
        return torch.rand(*shape)
    return torch.randn(*shape) * (8 if kind == "large" else 1)


def softmax(random):
    x = _floats(random, *_shape(random)) * random.choice([1, 4])

    def function(x):
        return torch.softmax(x, -1)

    def by(total, exp=torch.exp, divide=torch.divide):
        def program(x):
            e = exp(x - x.amax(-1, keepdim=True))
            return divide(e, total(e).unsqueeze(-1))

        return program

    def online(x):
        m = torch.full(x.shape[:-1], -torch.inf)
        s = torch.zeros_like(m)
        for part in x.split(16, -1):
            new = torch.maximum(m, part.amax(-1))
            s = s * torch.exp(m - new) + torch.exp(part - new.unsqueeze(-1)).sum(-1)
            m = new
        return torch.exp(x - m.unsqueeze(-1)) / s.unsqueeze(-1)

    honest = [(name, by(total), STRICT) for name, total in SUMS.items()]
    honest += [("online", online, STRICT)]
    honest += [("fast", by(in_parts, fast_exp, fast_divide), KERNELBENCH)]
    honest += [("flushed", lambda x: flushed(function(x)), STRICT)]

    def without_tail(x):
        e = torch.exp(x - x.amax(-1, keepdim=True))
        return e / e[..., :-3].sum(-1, keepdim=True)

    dishonest = [
        ("row", skipped_row(function)),
        ("tail", without_tail),
        ("columns", last_columns_of_others(function)),
        ("fp16", result_in_fp16(function)),
    ]
    if x.std() > 2 and x.numel() > 2000:
        dishonest.append(("small zeros", zeroed(1e-4)(function)))
    return Problem("softmax", function, [x], honest, dishonest)


def layer_norm(random):
    x = _floats(random, *_shape(random))
    n = x.shape[-1]
    w, b = torch.rand(n) + 0.5, torch.randn(n)

    def function(x, w, b):
        return torch.nn.functional.layer_norm(x, (n,), w, b)

    def by(total, rsqrt=torch.rsqrt):
        def program(x, w, b):
            mean = (total(x) / n).unsqueeze(-1)
            variance = (total((x - mean) ** 2) / n).unsqueeze(-1)
            return (x - mean) * rsqrt(variance + 1e-5) * w + b

        return program

    def welford(x, w, b):
        """Eight lanes, whose means and squares are put together."""
        lanes = []
        for lane in range(8):
            mean, m2 = torch.zeros_like(x[..., :1]), torch.zeros_like(x[..., :1])
            for count, k in enumerate(range(lane, n, 8), start=1):
                part = x[..., k : k + 1]
                delta = part - mean
                mean = mean + delta / count
                m2 = m2 + delta * (part - mean)
            lanes.append((mean, m2, count))
        mean, m2, count = lanes[0]
        for other, squares, more in lanes[1:]:
            delta, total = other - mean, count + more
            mean = mean + delta * (more / total)
            m2 = m2 + squares + delta * delta * (count * more / total)
            count = total
        return (x - mean) * torch.rsqrt(m2 / n + 1e-5) * w + b

    def fast_rsqrt(v):
        return torch.rsqrt(v) * (1 + 1.2e-7)

    honest = [(name, by(total), STRICT) for name, total in SUMS.items()]
    honest += [("welford", welford, STRICT), ("fast", by(in_parts, fast_rsqrt), KERNELBENCH)]

    def sampled(x, w, b):
        part = x[..., ::2]
        mean = part.mean(-1, keepdim=True)
        return (x - mean) * torch.rsqrt(part.var(-1, keepdim=True, unbiased=False) + 1e-5) * w + b

    def without_epsilon(x, w, b):
        y = x - x.mean(-1, keepdim=True)
        return y * torch.rsqrt((y**2).mean(-1, keepdim=True) + 1e-12) * w + b

    dishonest = [
        ("sampled", sampled),
        ("epsilon", without_epsilon),
        ("row", skipped_row(function)),
        ("no bias", lambda x, w, b: function(x, w, torch.zeros_like(b))),
        ("fp16", in_fp16(function)),
        ("columns", last_columns_of_others(function)),
    ]
    return Problem("layer_norm", function, [x, w, b], honest, dishonest)


def norm(random):
    x = _floats(random, *_shape(random))

    def function(x):
        return x * torch.rsqrt((x**2).mean(-1, keepdim=True) + 1e-6)

    def by(total):
        return lambda x: x / torch.sqrt((total(x * x) / x.shape[-1]).unsqueeze(-1) + 1e-6)

    honest = [(name, by(total), STRICT) for name, total in SUMS.items()]
    def half_of_the_row(x):
        return x * torch.rsqrt((x[..., ::2] ** 2).mean(-1, keepdim=True) + 1e-6)

    dishonest = [
        ("half of the row", half_of_the_row),
        ("row", skipped_row(function)),
        ("fp16", result_in_fp16(function)),
    ]
    return Problem("rms_norm", function, [x], honest, dishonest)


def product(random):
    m, k, n = random.randint(8, 70), random.choice([64, 300, 1024]), random.randint(8, 70)
    scale = random.choice([1.0, k**-0.5, 0.01 / k])
    x, w = _floats(random, m, k), torch.randn(k, n) * scale

    def function(x, w):
        return x @ w

    def by(total):
        return lambda x, w: total(x.t().unsqueeze(-1) * w.unsqueeze(1), 0)

    def parts(x, w):
        return sum(x[:, i::4] @ w[i::4] for i in range(4))

    def truncated(x):
        return (x.view(torch.int32) & -(1 << 13)).view(torch.float32)

    def half(x, w):
        return (x.bfloat16() @ w.bfloat16()).float()

    honest = [("in order", by(in_order), STRICT), ("split", parts, STRICT)]
    honest += [("tf32", lambda x, w: rounded(x) @ rounded(w), TF32)]
    honest += [("truncated tf32", lambda x, w: truncated(x) @ truncated(w), TF32)]
    honest += [("bf16", half, HALF)]
    honest += [("fp16", lambda x, w: function(x.bfloat16().float(), w.bfloat16().float()), HALF)]
    dishonest = [
        ("tf32", lambda x, w: rounded(x) @ rounded(w)),
        ("bf16", half),
        ("fp16", lambda x, w: (x.half().float() @ w.half().float())),
        ("row", skipped_row(function)),
        ("column", lambda x, w: function(x, torch.cat([w[:, :-1], 0 * w[:, -1:]], 1))),
        ("tail", lambda x, w: function(x[:, :-1], w[:-1])),
    ]
    return Problem("product", function, [x, w], honest, dishonest)


def loss(random):
    m, n = random.randint(256, 1024), random.randint(16, 64)
    x = _floats(random, m, n)
    t = torch.randn(m, n)
    kind = random.choice(["mse", "smooth_l1", "cross_entropy", "kl"])
    if kind == "cross_entropy":
        t = torch.randint(n, (m,))
        function = torch.nn.functional.cross_entropy
        rows = lambda x, t: -torch.log_softmax(x, 1).gather(1, t[:, None])[:, 0]
    elif kind == "kl":
        t = torch.softmax(t, 1)
        function = lambda x, t: torch.nn.functional.kl_div(
            torch.log_softmax(x, 1), t, reduction="batchmean"
        )
        rows = lambda x, t: torch.special.xlogy(t, t).sum(1) - (t * torch.log_softmax(x, 1)).sum(1)
    else:
        function = getattr(torch.nn.functional, {"mse": "mse_loss"}.get(kind, "smooth_l1_loss"))
        rows = lambda x, t: function(x, t, reduction="none").mean(1)

    def by(total):
        return lambda x, t: total(rows(x, t)) / m

    def sampled(part):
        return lambda x, t: rows(x[: m // part], t[: m // part]).mean()

    honest = [(name, by(total), STRICT) for name, total in SUMS.items()]
    dishonest = [
        ("an eighth", sampled(8)),
        ("a half", sampled(2)),
        ("last rows", lambda x, t: rows(x[:-16], t[:-16]).sum() / (m - 16)),
        ("zero", lambda x, t: torch.zeros(())),
    ]
    return Problem(kind, function, [x, t], honest, dishonest)


def running(random):
    x = _floats(random, *_shape(random))

    def function(x):
        return torch.cumsum(x, -1)

    def sequential(x):
        total, parts = torch.zeros_like(x[..., 0]), []
        for part in x.unbind(-1):
            total = total + part
            parts.append(total)
        return torch.stack(parts, -1)

    def scan(x):
        y, step = x.clone(), 1
        while step < y.shape[-1]:
            y = torch.cat([y[..., :step], y[..., step:] + y[..., :-step]], -1)
            step *= 2
        return y

    dishonest = [
        ("row", skipped_row(function)),
        ("fp16", in_fp16(function)),
        ("block", lambda x: torch.cat([function(p) for p in x.split(50, -1)], -1)),
    ]
    honest = [("sequential", sequential, STRICT), ("scan", scan, STRICT)]
    return Problem("cumsum", function, [x], honest, dishonest)


def activation(random):
    x = _floats(random, *_shape(random))
    kind = random.choice(["gelu", "silu", "tanh", "sigmoid", "mish", "elu", "softplus"])
    f = torch.nn.functional
    function = {"tanh": torch.tanh, "sigmoid": torch.sigmoid}.get(kind) or getattr(f, kind)

    def sigmoid(x):
        return fast_divide(torch.ones_like(x), 1 + fast_exp(-x))

    def mish(x):
        e = fast_exp(x.clamp(max=20))
        s = (1 + e) * (1 + e)
        return torch.where(x > 20, x, x * fast_divide(s - 1, s + 1))

    programs = {
        "gelu": lambda x: 0.5 * x * (1 + torch.erf(x * 0.70710678)),
        "silu": lambda x: x * sigmoid(x),
        "tanh": lambda x: 2 * sigmoid(2 * x) - 1,
        "sigmoid": sigmoid,
        "mish": mish,
        "elu": lambda x: torch.where(x > 0, x, fast_exp(x) - 1),
        "softplus": lambda x: torch.where(x > 20, x, torch.log(1 + fast_exp(x))),
    }
    honest = [("fast", programs[kind], KERNELBENCH)]
    honest += [("flushed", lambda x: flushed(function(x)), STRICT)]
    dishonest = [
        ("row", skipped_row(function)),
        ("fp16", result_in_fp16(function)),
        ("small zeros", zeroed(5e-5)(function)),
        ("relu", torch.relu),
    ]
    if kind in ("tanh", "elu"):
        dishonest.append(("linear", lambda x: torch.where(x.abs() < 0.1, x, function(x))))
    if kind in ("sigmoid", "softplus"):
        dishonest = [d for d in dishonest if d[0] != "small zeros"]
    return Problem(kind, function, [x], honest, dishonest)


def pooled(random):
    b, c, h = random.randint(2, 6), random.randint(3, 20), random.randint(8, 20)
    x = _floats(random, b, c, h, h)

    def function(x):
        return torch.nn.functional.group_norm(x, 1) * x.mean((2, 3), keepdim=True)

    def program(x):
        flat = x.reshape(b, -1)
        mean = in_parts(flat) / flat.shape[1]
        centered = x - mean.view(b, 1, 1, 1)
        variance = in_parts((centered**2).reshape(b, -1)) / flat.shape[1]
        y = centered * torch.rsqrt(variance + 1e-5).view(b, 1, 1, 1)
        return y * (in_order(x.reshape(b, c, -1)) / h**2).view(b, c, 1, 1)

    def channel(x):
        y = function(x).clone()
        y[:, -1] = 0
        return y

    dishonest = [("row", skipped_row(function)), ("channel", channel), ("fp16", in_fp16(function))]
    return Problem("pooled", function, [x], [("parts", program, STRICT)], dishonest)


def attention(random):
    n, d = random.randint(64, 200), random.choice([16, 64])
    q, k, v = _floats(random, n, d), torch.randn(n, d), torch.randn(n, d)

    def function(q, k, v):
        return torch.softmax(q @ k.t() * d**-0.5, -1) @ v

    def online(cast, exp=torch.exp):
        def program(q, k, v):
            m, s, o = torch.full((n, 1), -torch.inf), torch.zeros(n, 1), torch.zeros(n, d)
            for start in range(0, n, 32):
                part = slice(start, start + 32)
                scores = cast(q) @ cast(k[part]).t() * d**-0.5
                new = torch.maximum(m, scores.amax(-1, keepdim=True))
                p, scale = exp(scores - new), exp(m - new)
                s, m = s * scale + p.sum(-1, keepdim=True), new
                o = o * scale + cast(p) @ cast(v[part])
            return o / s

        return program

    honest = [
        ("online", online(lambda x: x), STRICT),
        ("fast", online(lambda x: x, fast_exp), KERNELBENCH),
        ("tf32", online(rounded), TF32),
        ("bf16", online(lambda x: x.bfloat16().float()), HALF),
    ]
    dishonest = [
        ("tf32", online(rounded)),
        ("window", lambda q, k, v: function(q, k[: n // 2], v[: n // 2])),
        ("tail", lambda q, k, v: torch.softmax(q @ k[:-1].t() * d**-0.5, -1) @ v[:-1]),
        ("row", skipped_row(function)),
    ]
    return Problem("attention", function, [q, k, v], honest, dishonest)


PROBLEMS = [softmax, layer_norm, norm, product, loss, running, activation, pooled, attention]
