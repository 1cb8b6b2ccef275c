# SPDX-License-Identifier: Apache-2.0
"""Programs that are right while numbers have ordinary sizes are refused: weights that are
pruned or minute, inputs beyond any bound that was thought large enough."""

import pytest
import torch
import torch.nn.functional as F
from mtmc_reference.distribution import DISTRIBUTIONS

_LINEAR = "self.fc = nn.Linear(64, 96, bias=False)"
_SCORES = "s = x[:, :, :8] @ x[:, :, 8:].mT\nm = torch.ones(8, 8, dtype=torch.bool).tril()\n"
_ATTENTION = _SCORES + "return s.masked_fill(~m, float('-inf')).softmax(-1)"


def _matrix(t):
    return t["fc_weight"]


def _linear(change):
    return lambda t: F.linear(t["x"], change(_matrix(t)))


def _without_minute(w):
    return torch.where(w.abs() < 1e-6, 0.0, w)


def _to_a_grid(w):
    return (w * 2.0**20).round() * 2.0**-20


def _skipping_rows(w):
    """Rows whose first weight is zero."""
    return torch.where(w[:, :1] == 0, 0.0, w)


def _skipping_columns(w):
    """Inputs whose weight is zero in the first row."""
    return torch.where(w[:1] == 0, 0.0, w)


def _skipping_blocks(w):
    """Blocks of sixteen inputs whose first weight is zero."""
    blocks = w.view(w.shape[0], -1, 16)
    return torch.where(blocks[..., :1] == 0, 0.0, blocks).view_as(w)


def _scores(t, fill):
    scores = t["x"][:, :, :8] @ t["x"][:, :, 8:].mT
    return scores.masked_fill(~torch.ones(8, 8, dtype=torch.bool).tril(), fill).softmax(-1)


def _begun_at(value, axis):
    """A maximum whose search begins at a number."""
    return lambda t: t["x"].amax(axis).clamp(min=value)


def _norm(t, guard):
    x = t["x"]
    y = (x - x.mean(1, keepdim=True)) / guard(x.var(1, keepdim=True, correction=0)).sqrt()
    return y * t["n_weight"] + t["n_bias"]


def _added(variance):
    return variance + 1e-5


def _at_least(variance):
    return variance.clamp(min=1e-5)


def _skipping_gains(t):
    """Channels whose gain is 0, with their bias."""
    return torch.where(t["n_weight"] == 0, 0.0, _norm(t, _added))


def _scaled(t, change):
    x = t["x"] / change(t["t"])
    return (x - x.amax(-1, keepdim=True)).softmax(-1)


def _power(t, at_zero):
    x = t["x"].abs()
    return torch.where(x == 0, at_zero, x**x)


_NORM = "self.n = nn.LayerNorm(64)"
_TEMPERATURE = "self.t = nn.Parameter(torch.tensor(0.7))"
_CASES = {
    "a maximum of rows from -1e30": ("pass", "return x.amax(1)", _begun_at(-1e30, 1)),
    "a maximum of columns from -100": ("pass", "return x.amax(0)", _begun_at(-100.0, 0)),
    "a maximum of all from -65504": ("pass", "return x.max()", _begun_at(-65504.0, (0, 1))),
    "a minimum from 1e9": ("pass", "return x.amin(1)", lambda t: t["x"].amin(1).clamp(max=1e9)),
    "a guard as a bound": (_NORM, "return self.n(x)", lambda t: _norm(t, _at_least)),
    "a smaller guard": (_NORM, "return self.n(x)", lambda t: _norm(t, lambda v: v + 1e-6)),
    "no bias without gain": (_NORM, "return self.n(x)", _skipping_gains),
    "a small temperature": (
        _TEMPERATURE,
        "return F.softmax(x / self.t, dim=-1)",
        lambda t: _scaled(t, lambda temperature: temperature.clamp(min=1e-30)),
    ),
    "zero to the power of zero": (
        "pass",
        "return x.abs() ** x.abs()",
        lambda t: _power(t, float("nan")),
    ),
    "weights below 1e-6": (_LINEAR, "return self.fc(x)", _linear(_without_minute)),
    "weights on a grid": (_LINEAR, "return self.fc(x)", _linear(_to_a_grid)),
    "rows by their first weight": (_LINEAR, "return self.fc(x)", _linear(_skipping_rows)),
    "inputs by the first row": (_LINEAR, "return self.fc(x)", _linear(_skipping_columns)),
    "blocks by their first weight": (_LINEAR, "return self.fc(x)", _linear(_skipping_blocks)),
    "inputs up to 1e6": (
        _LINEAR,
        "return self.fc(x)",
        lambda t: F.linear(t["x"].clamp(-1e6, 1e6), _matrix(t)),
    ),
    "a whole number of 32 bits": (
        "pass",
        "return torch.floor(x)",
        lambda t: t["x"].floor().clamp(-(2.0**31), 2.0**31 - 128),
    ),
    "a fill of -1e4": ("pass", _ATTENTION, lambda t: _scores(t, -1e4)),
}
_HONEST = {
    "maximum of rows": ("pass", "return x.amax(1)", lambda t: t["x"].amax(1)),
    "maximum of columns": ("pass", "return x.amax(0)", lambda t: t["x"].amax(0)),
    "maximum from the largest": (
        "pass",
        "return x.amax(1)",
        _begun_at(torch.finfo(torch.float32).min, 1),
    ),
    "softmax": ("pass", "return x.softmax(1)", lambda t: t["x"].softmax(1)),
    "temperature": (
        _TEMPERATURE,
        "return F.softmax(x / self.t, dim=-1)",
        lambda t: _scaled(t, lambda temperature: temperature),
    ),
    "norm": (_NORM, "return self.n(x)", lambda t: _norm(t, _added)),
    "argmax": ("pass", "return x.argmax(1)", lambda t: 63 - t["x"].flip(1).argmax(1)),
    "power": ("pass", "return x.abs() ** x.abs()", lambda t: _power(t, 1.0)),
    "linear": (_LINEAR, "return self.fc(x)", _linear(lambda w: w)),
    "floor": ("pass", "return torch.floor(x)", lambda t: t["x"].floor()),
    "scores": ("pass", _ATTENTION, lambda t: _scores(t, float("-inf"))),
}


def _refused_on(client, write_problem, case):
    init, forward, program = case
    shape = "8, 8, 16" if forward == _ATTENTION else "32, 64"
    footer = (
        f"\n\ndef get_inputs():\n    return [torch.randn({shape})]\n\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    client.load(write_problem(forward, init=init, footer=footer))
    answers = {"hidden 1": client.check(program, 1), "hidden 2": client.check(program, 2)}
    for number, name in enumerate([None, *DISTRIBUTIONS]):
        workload = (0,) if name is None else (number + 2, name)
        answers[name or "public"] = client.check(program, *workload)
    return [name for name, answer in answers.items() if answer and not answer["isCorrect"]]


@pytest.mark.parametrize("name", _CASES)
def test_a_program_for_ordinary_sizes_is_refused(client, write_problem, name):
    refused = _refused_on(client, write_problem, _CASES[name])

    assert refused and "public" not in refused


@pytest.mark.parametrize("name", _HONEST)
def test_one_for_any_size_is_accepted(client, write_problem, name):
    assert not _refused_on(client, write_problem, _HONEST[name])
