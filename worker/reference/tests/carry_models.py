# SPDX-License-Identifier: Apache-2.0
"""Recurrences by gates, by class and name, as edge_models has them, and programs that drop what a
gate lets through: where it is nearly closed, where it is closed for a moment, at the ends of
blocks, by logarithms or quotients of products of gates."""

from edge_models import Edge

_T = 16
_X = f"torch.randn({{n}}, {_T}, {{d}})"
_ONE_X = f"torch.randn({{n}}, {_T})"
_GATES, _ONE_GATE = _X.replace("randn", "rand"), _ONE_X.replace("randn", "rand")


def _scan(step, start="x[:, 0] * 0"):
    """A list of states; `step` is an expression of h, the gate f and the input u."""
    return f"(lambda h: [h := (lambda f, u: {step})(g[:, j], x[:, j]) for j in range({_T})])({start})"


def _stacked(step, start="x[:, 0] * 0"):
    return f"torch.stack({_scan(step, start)}, 1)"


# In each body: a scan of blocks, by products p of gates and sums of what is behind them; `carry` is
# what comes into one from the state h before it.
_HELP = f"""
        def scan(g, x, h):
            return torch.stack([h := g[:, j] * h + x[:, j] for j in range(x.shape[1])], 1)
        def blocks(g, x, size, carry, h):
            found = []
            for b in range(0, {_T}, size):
                f, u = g[:, b : b + size], x[:, b : b + size]
                found.append(scan(f, u, h * 0) + carry(f, f.cumprod(1), h))
                h = found[-1][:, -1]
            return torch.cat(found, 1)
        def logs(q):
            return torch.stack([(torch.exp(q[:, j : j + 1] - q[:, : j + 1]) * x[:, : j + 1]).sum(1) for j in range({_T})], 1)
        """


def _blocks(size, carry, start="x[:, 0] * 0", u="x"):
    return f"blocks(g, {u}, {size}, lambda f, p, h: {carry}, {start})"


_PLAIN = _stacked("f * h + u")
_MEAN = _stacked("f * h + (1 - f) * u")
_P = "g.cumprod(1)"
_GATED = (
    (_PLAIN, _stacked("torch.where(f < 1e-3, u, f * h + u)")),
    (_PLAIN, _stacked("torch.where(f < 1e-5, u, f * h + u)")),
    (_PLAIN, _stacked("torch.where(f < 1e-7, u, f * h + u)")),
    (_PLAIN, _stacked("torch.where(f < 1e-12, u, f * h + u)")),
    (_PLAIN, _stacked("torch.where((h * f).abs() < 1e-4, u, f * h + u)")),
    (_PLAIN, _blocks(4, "torch.where(p > 1e-9, p * h[:, None], 0)")),
    (_PLAIN, f"(lambda p: p * (x / p.clamp(min=1e-30)).cumsum(1))({_P})"),
    (_PLAIN, f"(lambda p: p * (x / (p + 1e-20)).cumsum(1))({_P})"),
    (_PLAIN, "logs(torch.log(g + 1e-8).cumsum(1))"),
    (_PLAIN, "logs(torch.log(g.clamp(min=1e-6)).cumsum(1))"),
    (_PLAIN, _blocks(4, "torch.where(p > 1e-4, p * h[:, None], 0)")),
    (_PLAIN, _blocks(4, "torch.where(p[:, -1:] > 1e-6, p * h[:, None], 0)")),
    (_PLAIN, _blocks(4, "torch.where(p[:, -1:] > 0, p * h[:, None], 0)")),
    (_PLAIN, _blocks(8, "torch.where(p[:, -1:] == 0, 0, p * h[:, None])")),
    (_PLAIN, _blocks(8, "torch.where((f == 0).any(1, keepdim=True), 0, p * h[:, None])")),
)
_OF_MEANS = (
    (_MEAN, _stacked("torch.where(f < 1e-3, u, f * h + (1 - f) * u)")),
    (_MEAN, _stacked("torch.where(f > 0.9999, h, f * h + (1 - f) * u)")),
    (_MEAN, _stacked("torch.where(f > 0.99999, h, f * h + (1 - f) * u)")),
    (_MEAN, _blocks(4, "torch.where(p[:, -1:] > 0, p * h[:, None], 0)", u="(1 - g) * x")),
)
_HONEST = (_stacked("torch.addcmul(u, f, h)"), "scan(g, x, x[:, 0] * 0)")
# Products of gates that are no larger than one.
_OF_BLOCKS = (_blocks(4, "p * h[:, None]"), _blocks(8, "p * h[:, None]"), *_HONEST)
_HONEST_MEANS = (_stacked("(1 - f) * u + h * f"),)
_WITNESSES = (
    "t['g'][:, 5] = 0; t['x'][:, :5] *= 1e6",
    "t['g'][:, 5] = 1e-6; t['x'][:, :5] *= 1e8",
    "t['g'][:, 5] = 1e-4; t['x'][:, :5] *= 1e6",
    "t['g'] *= 1e-3; t['x'][:, :7] *= 1e12",
    "t['g'][:, 3] = 1; t['g'][:, 7] = 0; t['x'] *= 100",
    "t['g'][:, 6] = 0; t['g'][:, 4:6] = 1",
    "t['g'][:, 5] = 1 - 5e-6; t['x'][:, 5] *= 1e8",
    "t['g'][:, 5] = 1 - 5e-5; t['x'][:, 5] *= 1e6",
    "t['g'][:, 12] = 0; t['g'][:, 8:12] = 1; t['g'][:, :8] = 0.9",
    "t['g'][:, 5] = 0; t['x'][:, :5] *= 1e12",
    "t['g'][:, 5] = 1e-8; t['x'][:, :5] *= 1e10",
    "t['g'][:, 5] = 1e-13; t['x'][:, :5] *= 1e15",
    "t['x'] *= 1e-5",
)


def _learned(gate):
    """The same with a gate that is made of inputs."""
    return tuple((f"(lambda g: {right})({gate})", f"(lambda g: {wrong})({gate})") for right, wrong in _GATED)


_LEARNED = tuple(f"t['l.weight'] *= 0; t['l.bias'].fill_({bias}); t['x'][:, :{end}] *= {size}" for bias, end, size in ((-14, 5, 1e9), (-8, 5, 1e7), (-200, 5, 1), (-5, 2, 1e6), (-5, 5, 1e9)))
_SIGMOID = "torch.sigmoid(self.l(x))"
_SCANS = {
    "gates": Edge("pass", {"x": _X, "g": _GATES}, _HELP + "return SITE[:, 5:]", _GATED, _WITNESSES, _HONEST),
    "bounded": Edge("pass", {"x": _X, "g": _GATES}, _HELP + "return torch.atan(SITE)", _GATED, _WITNESSES, _HONEST),
    "gates of rows": Edge("pass", {"x": _ONE_X, "g": _ONE_GATE}, _HELP + "return torch.atan(SITE)", _GATED, _WITNESSES, _HONEST),
    "last state": Edge("pass", {"x": _X, "g": _GATES}, _HELP + "return SITE[:, -1]", _GATED, _WITNESSES, _HONEST),
    "backwards": Edge("pass", {"x": _X, "g": _GATES}, _HELP + "g, x = g.flip(1), x.flip(1); return torch.atan(SITE).flip(1)", _GATED, tuple(f"{w}; t['x'] = t['x'].flip(1); t['g'] = t['g'].flip(1)" for w in _WITNESSES), _HONEST),
    "means": Edge("pass", {"x": _X, "g": _GATES}, _HELP + "return SITE", _OF_MEANS, _WITNESSES, _HONEST_MEANS),
    "read out": Edge("self.v = nn.Linear({d}, {k})", {"x": _X, "g": _GATES}, _HELP + "return self.v(torch.atan(SITE))", _GATED, _WITNESSES, _HONEST),
    "learned gates": Edge(
        "self.l = nn.Linear({d}, {d})", {"x": _X}, _HELP + "return torch.atan(SITE)", _learned(_SIGMOID), _LEARNED, tuple(f"(lambda g: {text})({_SIGMOID})" for text in _OF_BLOCKS)
    ),
    "decays": Edge(
        "self.a = nn.Parameter(torch.rand({d}))",
        {"x": _X},
        _HELP + "g = self.a.expand({n}, 16, {d}); return torch.atan(SITE)",
        _GATED,
        tuple(f"t['a'].fill_({a}); t['x'][:, :{b}] *= {size}" for a in (0, 1e-6, 1e-4, 1e-2) for b in (2, 5) for size in (1, 1e6, 1e12)),
        _HONEST,
    ),
    "states": Edge(
        "pass",
        {"x": _ONE_X, "g": _ONE_GATE, "s": "torch.randn({n})"},
        _HELP + "return SITE",
        tuple((right.replace("x[:, 0] * 0", "s"), wrong.replace("x[:, 0] * 0", "s")) for right, wrong in (_GATED[number] for number in (0, 1, 2, 3, 10, 12))),
        ("t['s'] *= 1e8; t['g'][:, 0] = 1e-4", "t['s'] *= 1e10; t['g'][:, 0] = 1e-6", "t['g'][:, 2] = 0; t['s'] *= 1e4"),
        tuple(text.replace("x[:, 0] * 0", "s") for text in _HONEST),
    ),
}

_KEPT = "torch.where(m[:, j, None], torch.tanh(self.l(h) + u), h)"


def _masked(step, start="x[:, 0] * 0"):
    return f"(lambda h: [h := (lambda u: {step})(x[:, j]) for j in range({_T})][-1])({start})"


_MASK = f"torch.arange({_T}) < torch.randint(4, {_T} + 1, ({{n}}, 1))"
_DONE = f"torch.rand({{n}}, {_T}) < 0.2"
_RETURNS = "(lambda h: torch.stack([h := x[:, j] + 0.9 * {keep} * h for j in reversed(range(16))], 1))(x[:, 0] * 0)"
_EARLY = "(lambda h: torch.stack([h := torch.where(m[:, j], 0, h) + x[:, j] for j in range(16)], 1))(x[:, 0] * 0)"


_MASKS = {
    "lengths": Edge(
        "self.l = nn.Linear({d}, {d})",
        {"x": _X, "m": _MASK},
        "return SITE",
        (
            (_masked(_KEPT), f"(lambda h: torch.stack([h := torch.tanh(self.l(h) + x[:, j]) for j in range({_T})], 1)[torch.arange({{n}}), (m.sum(1) - 1).clamp(min=0)] * m.any(1, keepdim=True))(x[:, 0] * 0)"),
            (_masked(_KEPT), f"(lambda h: torch.stack([h := torch.tanh(self.l(h) + x[:, j]) * m[:, j, None] for j in range({_T})], 1)[torch.arange({{n}}), (m.sum(1) - 1).clamp(min=0)])(x[:, 0] * 0)"),
        ),
        ("t['m'][1, :3] = False; t['m'][1, 3:] = True", "t['m'][1] = True; t['m'][1, 7] = False"),
        (_masked("h + m[:, j, None] * (torch.tanh(self.l(h) + u) - h)"),),
    ),
    "returns": Edge(
        "pass",
        {"x": _ONE_X, "m": f"(torch.arange({_T}) == {_T - 1}) & (torch.rand({{n}}, 1) < 0.5)"},
        "return SITE",
        ((_RETURNS.format(keep="(~m[:, j])"), _RETURNS.format(keep="(~(m[:, j] & (j == 15)))")),),
        "t['m'][1, 5:8] = True",
        ("(lambda h: torch.stack([h := torch.where(m[:, j], x[:, j], x[:, j] + 0.9 * h) for j in reversed(range(16))], 1))(x[:, 0] * 0)",),
    ),
    "segments": Edge(
        "pass",
        {"x": _ONE_X, "m": _DONE},
        "return SITE[:, 5:]",
        ((_EARLY, "(lambda c: c - torch.where(m.cumsum(1) > 0, (c - x).gather(1, torch.where(m, torch.arange(16), 0).cummax(1).values), 0))(x.cumsum(1))"),),
        "t['x'][:, :4] *= 1e7; t['m'][:, 5] = True",
        ("(lambda h: torch.stack([h := (~m[:, j]) * h + x[:, j] for j in range(16)], 1))(x[:, 0] * 0)",),
    ),
}
MODELS = {"F gates": _SCANS, "G carries": _MASKS}
