# SPDX-License-Identifier: Apache-2.0
"""A draw on which the process dies costs that draw, not the evaluation."""

import pytest
import torch
from conftest import Process
from mtmc_reference.failure import Dropped
from mtmc_reference.peril import Peril

_FOOTER = """
def get_inputs():
    return [torch.randn(128, 128)]

def get_init_inputs():
    return []
"""


def risky():
    return True


def sound():
    return False


def peril(folder):
    return Peril(str(folder), "source", torch.device("cpu"))


def die(made, what):
    """What is left where the process ends in the middle of a run."""
    made._write({**made._deaths, what: made._deaths.get(what, 0) + 1})


def test_a_run_leaves_no_mark_when_all_is_well(tmp_path):
    assert peril(tmp_path).run("a", risky, lambda: 3) == 3
    with pytest.raises(ValueError):
        peril(tmp_path).run("a", risky, lambda: int("x"))

    assert not list(tmp_path.iterdir())


def test_what_a_process_died_of_is_not_tried_again(tmp_path):
    for _ in range(2):
        die(peril(tmp_path), "a")

    with pytest.raises(Dropped, match="died there"):
        peril(tmp_path).run("a", sound, lambda: 3)
    assert peril(tmp_path).run("b", sound, lambda: 3) == 3


def test_after_two_deaths_no_risk_is_taken(tmp_path):
    for what in "ab":
        die(peril(tmp_path), what)

    assert peril(tmp_path).run("a", sound, lambda: 3) == 3
    with pytest.raises(Dropped, match="not tried"):
        peril(tmp_path).run("c", risky, lambda: 3)


def test_a_run_that_dies_costs_its_distribution_alone(tmp_path, write_problem):
    forward = "return Deadly.apply(x)"
    path = write_problem(forward, footer=_FOOTER)
    text = path.read_text().replace(
        "class Model",
        "import os\n\n@torch.library.custom_op('mtmc_test::deadly', mutates_args=())\n"
        "def deadly(x: torch.Tensor) -> torch.Tensor:\n"
        "    if ((x.abs() > 1e6) & x.isfinite()).any():\n        os.abort()\n"
        "    return torch.tanh(x)\n\n"
        "@deadly.register_fake\ndef _(x):\n    return torch.empty_like(x)\n\nclass Model",
    )
    path.write_text(text.replace("Deadly.apply(x)", "torch.ops.mtmc_test.deadly(x)"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    deaths, answer = 0, ""
    while not answer and deaths < 4:
        process = Process(scratch)
        try:
            answer = process.load(path)
        except (ValueError, BrokenPipeError):
            deaths += 1
        process.stop()

    dropped = answer["loaded"]["inspection"]["droppedDistributions"]
    assert deaths == 2, "once more, because something else may have ended the first"
    assert "DISTRIBUTION_TIMES_3" not in dropped
    assert "DISTRIBUTION_RANGE_ENDS" not in dropped
    assert "DISTRIBUTION_HEAVY_TAILED" not in dropped, "a milder one is there"
