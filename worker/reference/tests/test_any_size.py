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
    return (w * 2.0**22).round() * 2.0**-22


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


_CASES = {
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
