# SPDX-License-Identifier: Apache-2.0
"""Short cuts that hold for the file's inputs alone are refused, and what they shorten is not."""

import os
import random

import pytest
import shortcuts
import torch
from mtmc_reference import landmarks
from mtmc_reference.distribution import DISTRIBUTIONS
from shortcut_sites import CANCELLED

# The same for every change, so that a failure is the change's; another one draws others.
_SEED = int(os.environ.get("MTMC_SHORTCUTS_SEED", "20261"))
_PARTS, _PER_PART = 4, 8


def refused_on(client, drawn, after):
    """Name of the first distribution that refuses an expression; None where all accept it."""
    for number, name in enumerate([None, *DISTRIBUTIONS]):
        workload = (0,) if name is None else (number + 2, name)
        answer = client.check(lambda tensors: drawn.run(after, tensors), *workload)
        if answer is not None and not answer["isCorrect"]:
            return name or "public"
    return None


@pytest.fixture(autouse=True)
def one_thread():
    """Small tensors gain nothing from more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("part", range(_PARTS))
def test_short_cuts_are_refused_and_what_they_shorten_is_not(client, tmp_path, part):
    path, judged = tmp_path / "problem.py", 0
    for drawn in shortcuts.draw(_SEED, _PARTS * _PER_PART, part, _PARTS):
        path.write_text(drawn.source())
        client.load(path)
        assert refused_on(client, drawn, drawn.after) is None, drawn.title
        for twin in filter(drawn.witness, drawn.twins):
            judged += 1
            assert refused_on(client, drawn, twin), f"{drawn.title} <- {twin}"
    assert judged >= _PER_PART // 2


@pytest.mark.parametrize("site", CANCELLED, ids=lambda site: site.name)
def test_what_cancels_far_from_zero_is_refused(client, tmp_path, site):
    path = tmp_path / "problem.py"
    drawn = shortcuts.Drawn(site, 1.0, 0.0, "{}", "torch.randn(32, 33)")
    path.write_text(drawn.source())
    client.load(path)

    assert refused_on(client, drawn, drawn.after) is None
    assert refused_on(client, drawn, drawn.twins[0]) == "DISTRIBUTION_OFFSET"


@pytest.mark.parametrize("text", ["torch.round(x * 8 + 1)", "torch.floor(1 - x / 4)"])
def test_what_is_rounded_meets_halves_and_whole_numbers(client, write_problem, text):
    marks = _marks_of(client, write_problem, text)

    assert [mark.step for mark in marks] == [0.5]
    x = marks[0].met(torch.randn(4096), _generator())
    value, is_exact = marks[0].there(x)
    share = (is_exact & (value * 2 == (value * 2).round())).double().mean()
    is_half = is_exact & (value.frac().abs() == 0.5)
    assert share > 0.9 and is_half.double().mean() > 0.3


def test_what_is_compared_meets_the_number_itself(client, write_problem):
    marks = _marks_of(client, write_problem, "(2 - x * 4 > 0.75).float()")

    x = marks[0].met(torch.randn(64), _generator())
    assert (2 - x * 4 == 0.75).sum() >= 16


def test_what_rounding_decides_is_no_landmark(client, write_problem):
    assert not _marks_of(client, write_problem, "(x * 0.1 > 0.5).float()")


def test_waves_are_met_in_other_periods(client, write_problem):
    marks = _marks_of(client, write_problem, "torch.sqrt(torch.sin(x.abs() * 2))")
    wave = next(mark for mark in marks if mark.period)

    x = wave.moved(torch.rand(4096), _generator())
    assert x.max() > 9 and torch.sin(2 * x).min() > -1e-4


def _generator():
    return torch.Generator().manual_seed(random.Random(_SEED).randrange(2**31))


def _marks_of(client, write_problem, text):
    client.load(write_problem(f"return {text}"))
    return landmarks.landmarks(client.session._loaded._workloads.domain, "x")
