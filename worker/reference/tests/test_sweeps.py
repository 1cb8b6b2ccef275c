# SPDX-License-Identifier: Apache-2.0
"""Single numbers, masks and logarithms of a model take many values over the workloads, and the
state of the constructor is seen with other inputs as well."""

import pytest
import torch
import torch.nn.functional as F
from mtmc_reference.distribution import DISTRIBUTIONS
from mtmc_reference.parameters import AS_MADE

_SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        {body}

def get_inputs():
    return [torch.randn(48, 32)]

def get_init_inputs():
    return []
"""


def _case(init, body, honest, **cheats):
    return _SOURCE.format(init=init, body=body), honest, cheats


def _parameter(value):
    return f"self.p = nn.Parameter(torch.tensor({value}))"


def _buffer(name, value):
    return f"self.register_buffer('{name}', {value})"


def _softmax(t, scale):
    return (t["x"].double() * scale.double()).softmax(1).float()


def _mean(t, mask, least=0):
    x = t["x"].double()
    return ((x * mask).sum(1) / mask.sum(1).clamp(min=least)).float()


def _counted(t, n):
    return (t["x"].double() * (n.double() / (n.double() + 60))).float()


_MASK = _buffer("m", "torch.rand(48, 32) < 0.5")


def _norm(t, weight, bias):
    return F.layer_norm(t["x"].double(), (32,), weight.double(), bias.double(), 1e-5).float()


def _norm_as_made(t):
    """In one pass where the affine part does nothing."""
    if (t["n_weight"] == 1).all() and (t["n_bias"] == 0).all():
        x = t["x"]
        mean = x.mean(1, keepdim=True)
        return (x - mean) * ((x * x).mean(1, keepdim=True) - mean * mean + 1e-5).rsqrt()
    return _norm(t, t["n_weight"], t["n_bias"])


def _variance(t, least):
    x, mask = t["x"].double(), t["m"].double()
    count = mask.sum(1, keepdim=True)
    mean = (x * mask).sum(1, keepdim=True) / count.clamp(min=1)
    squares = (((x - mean) * mask) ** 2).sum(1)
    return torch.where(count[:, 0] < least, 0.0, squares / (count[:, 0] - 1).clamp(min=1)).float()


def _half_away(t):
    x = t["x"]
    half = x.half()
    size = half.abs()
    after = (size.view(torch.int16) + 1).view(torch.half)
    is_tie = x.double().abs() == (size.double() + after.double()) / 2
    return torch.where(is_tie, torch.copysign(after.float(), x), half.float())


def _linear(t):
    return F.linear(t["x"].double(), t["f_weight"].double(), t["f_bias"].double())


def _conv(t, name):
    return F.conv1d(t["x"].double(), t[f"{name}_weight"].double(), t[f"{name}_bias"].double())


def _cycled(t, is_turn):
    return torch.where(is_turn, t["x"] * t["x"], t["x"])


_CASES = {
    "cycle": _case(
        _buffer("n", "torch.tensor(3)"),
        "return torch.where((self.n + 1) % 60 == 0, x * x, x)",
        lambda t: _cycled(t, (t["n"] + 1) % 60 == 0),
        never=lambda t: t["x"],
    ),
    "milestone": _case(
        _buffer("n", "torch.tensor(3)"),
        "return torch.where(self.n >= 450, x * x, x)",
        lambda t: _cycled(t, t["n"] >= 450),
        after=lambda t: _cycled(t, t["n"] > 450),
    ),
    "few of a group": _case(
        _MASK,
        "c = self.m.sum(1, keepdim=True)\n        d = x - (x * self.m).sum(1, keepdim=True) / c.clamp(min=1)"
        "\n        return (d * self.m).square().sum(1) / (c[:, 0] - 1).clamp(min=1)",
        lambda t: _variance(t, 0),
        from_three_on=lambda t: _variance(t, 3),
    ),
    "one side": _case(
        "self.p = nn.Parameter(torch.randn(32))",
        "return x / (0.01 + torch.relu(self.p).mean())",
        lambda t: (t["x"].double() / (0.01 + t["p"].double().relu().mean())).float(),
        some_are_positive=lambda t: (
            t["x"].double() / (0.01 + t["p"].double().relu().mean().clamp(min=0.005))
        ).float(),
    ),
    "half": _case(
        "pass",
        "return x.half().float()",
        lambda t: t["x"].half().float(),
        ties_away=_half_away,
    ),
    "temperature": _case(
        _parameter(2.0),
        "return torch.softmax(self.p * x, 1)",
        lambda t: _softmax(t, t["p"]),
        positive=lambda t: _softmax(t, t["p"].abs()),
        at_least_1=lambda t: _softmax(t, t["p"].clamp(min=1)),
        known=lambda t: _softmax(t, torch.where((t["p"] - 2).abs() < 0.2, 2.0, t["p"])),
    ),
    "power": _case(
        _parameter(3.0),
        "return (x.abs() + 0.5) ** self.p",
        lambda t: (t["x"].double().abs() + 0.5).pow(t["p"].double()).float(),
        cube=lambda t: (t["x"].double().abs() + 0.5)
        .pow(torch.where((t["p"] - 3).abs() < 0.2, 3.0, t["p"]).double())
        .float(),
    ),
    "logarithm of a scale": _case(
        "self.p = nn.Parameter(torch.randn(32) * 0.1)",
        "return x / (torch.exp(self.p) + 1e-9)",
        lambda t: (t["x"].double() / (t["p"].double().exp() + 1e-9)).float(),
        without_guard=lambda t: (t["x"].double() / t["p"].double().exp()).float(),
        bounded=lambda t: (t["x"].double() / (t["p"].clamp(min=-12).double().exp() + 1e-9)).float(),
    ),
    "mask": _case(
        _MASK,
        "return (x * self.m).sum(1) / self.m.sum(1).clamp(min=1)",
        lambda t: _mean(t, t["m"], 1),
        at_least_2=lambda t: _mean(t, t["m"], 2),
        at_most_30=lambda t: ((t["x"].double() * t["m"]).sum(1) / t["m"].sum(1).clamp(1, 30)).float(),
    ),
    "flags": _case(
        _buffer("a", "torch.tensor(False)") + "; " + _buffer("b", "torch.tensor(False)"),
        "return torch.where(self.a, x.abs(), x) + torch.where(self.b, x * x, x)",
        lambda t: torch.where(t["a"], t["x"].abs(), t["x"]) + torch.where(t["b"], t["x"] ** 2, t["x"]),
        one_for_both=lambda t: torch.where(t["a"], t["x"].abs(), t["x"])
        + torch.where(t["a"], t["x"] ** 2, t["x"]),
    ),
    "counter": _case(
        _buffer("n", "torch.tensor(3)"),
        "return x * (self.n / (self.n + 60.0))",
        lambda t: _counted(t, t["n"]),
        late=lambda t: _counted(t, t["n"]) if t["n"] < 1000 else t["x"],
        early=lambda t: _counted(t, t["n"].clamp(max=50)),
    ),
    "affine": _case(
        "self.w = nn.Parameter(torch.ones(32)); self.b = nn.Parameter(torch.zeros(32))",
        "return x * self.w + self.b",
        lambda t: t["x"] * t["w"] + t["b"],
        gain_by_samples=lambda t: t["x"] * (1 if (t["w"][[0, 16, 31]] == 1).all() else t["w"]) + t["b"],
        bias_by_samples=lambda t: t["x"] * t["w"] + (0 if (t["b"][:8] == 0).all() else t["b"]),
    ),
    "as made": _case(
        "self.n = nn.LayerNorm(32)",
        "return self.n(x)",
        lambda t: _norm(t, t["n_weight"], t["n_bias"]),
        one_pass=_norm_as_made,
    ),
    "bias of what an exponential takes": _case(
        "self.f = nn.Linear(32, 24)",
        "return F.softplus(self.f(x))",
        lambda t: F.softplus(_linear(t)).float(),
        beside_one=lambda t: torch.log(1 + torch.exp(_linear(t).float())),
    ),
    "scale behind a softplus": _case(
        "self.p = nn.Parameter(torch.randn(32))",
        "return x * F.softplus(self.p)",
        lambda t: t["x"] * F.softplus(t["p"]),
        overflows=lambda t: t["x"] * torch.log1p(torch.exp(t["p"])),
    ),
    "bias of a gate": _case(
        "self.f = nn.Conv1d(48, 16, 3); self.g = nn.Conv1d(48, 16, 3)",
        "return torch.sigmoid(-self.f(x)) * self.g(x)",
        lambda t: (torch.sigmoid(-_conv(t, "f")) * _conv(t, "g")).float(),
        beside_one=lambda t: (1 - torch.sigmoid(_conv(t, "f").float())) * _conv(t, "g").float(),
    ),
    "zero has a sign": _case(
        _parameter(0.5),
        "return torch.sign(x) * torch.relu(x.abs() - self.p)",
        lambda t: torch.sign(t["x"]) * (t["x"].abs() - t["p"]).relu(),
        signed=lambda t: torch.where(t["x"] < 0, -1.0, 1.0) * (t["x"].abs() - t["p"]).relu(),
    ),
}
_AS_MADE = (2, 3, 4, 9, 13, 14, 16)


def _refused_on(client, write_problem, source, program):
    found = client.load(write_problem(source=source))
    output = found["graph"]["outputs"][0]["name"]
    workloads = [(0,), (1,), (2,)]
    workloads += [(100 + number, name) for number, name in enumerate(DISTRIBUTIONS, start=1)]
    workloads += [(AS_MADE + number, DISTRIBUTIONS[number - 1]) for number in _AS_MADE]
    return client.refusals(lambda t: {output: program(t)}, workloads)


@pytest.mark.parametrize("name", _CASES)
def test_what_the_reference_computes_is_accepted(client, write_problem, name):
    source, honest, _ = _CASES[name]

    assert not _refused_on(client, write_problem, source, honest)


@pytest.mark.parametrize(
    ("name", "cheat"), [(name, cheat) for name, case in _CASES.items() for cheat in case[2]]
)
def test_what_is_right_for_a_few_values_is_refused(client, write_problem, name, cheat):
    source, _, cheats = _CASES[name]

    refused = _refused_on(client, write_problem, source, cheats[cheat])

    assert refused and (0,) not in refused
