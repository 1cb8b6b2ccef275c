# SPDX-License-Identifier: Apache-2.0
"""What scripts/kernelbench makes of rows: which of two stays, what is not slower, the order."""

import argparse
import importlib.machinery
import importlib.util
import pathlib

import pytest

_SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/kernelbench"


@pytest.fixture(scope="module")
def script():
    loader = importlib.machinery.SourceFileLoader("kernelbench_script", str(_SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def row(problem="level1/1_a", **fields):
    return {"problem": problem, "precision": "kernelbench", "verified": True, "level": 1, **fields}


@pytest.fixture
def table(script, tmp_path):
    options = argparse.Namespace(again=False, out=tmp_path / "table.json")
    return script.Table(options, {"command": "x", "commit": "1"})


def problems_of(table):
    return [one["problem"] for one in table._file.rows]


def test_the_best_of_what_pytorch_offers_is_the_rival(script):
    measured = row(export_ms=2.0, rival_eager_ms=3.0, graph_ms=1.0)

    found = script.completed(measured, 2, compile_ms=1.5)

    assert found["best_ms"] == 1.0 and found["speedup_best"] == 0.5 and not found["not_slower"]
    assert found["compile_ms"] == 1.5 and found["compile_is_earlier"] and found["level"] == 2


def test_noise_is_not_slower(script):
    assert script.completed(row(export_ms=1.01, rival_eager_ms=1.0), 1, None)["not_slower"]
    assert script.completed(row(export_ms=0.0065, rival_eager_ms=0.005), 1, None)["not_slower"]
    assert not script.completed(row(export_ms=1.04, rival_eager_ms=1.0), 1, None)["not_slower"]


def test_nothing_is_said_of_what_was_not_measured(script):
    found = script.completed(row(verified=False, failure="x"), 1, None)

    assert "not_slower" not in found and "best_ms" not in found


def test_a_row_is_replaced_only_by_one_that_was_measured_as_well(table):
    table.put(row(export_ok=True, graph_ms=1.0, trials=1))
    table.put(row(verified=False, failure="no worker"))
    table.put(row(export_ok=True, trials=2))
    assert table._file.rows[0]["trials"] == 1

    table.put(row(export_ok=True, graph_ms=1.1, trials=3))
    assert len(table._file.rows) == 1 and table._file.rows[0]["trials"] == 3


def test_what_is_there_and_right_is_not_measured_again(table):
    table.put(row(export_ok=True))
    table.put(row("level1/2_b", verified=False))

    wanted = [table.wants(f"level1/{name}", "kernelbench") for name in ("1_a", "2_b", "3_c")]
    assert wanted == [False, True, True] and table.wants("level1/1_a", "tf32")


def test_losses_come_first(table):
    table.put(row("level1/1_fast", not_slower=True, speedup_best=2.0))
    table.put(row("level1/2_slow", not_slower=False, speedup_best=0.5))
    table.put(row("level1/3_slower", not_slower=False, speedup_best=0.2))
    table.put(row("level1/4_none", verified=False))

    assert [name[-4:] for name in problems_of(table)] == ["none", "ower", "slow", "fast"]


def test_the_summary_counts_what_has_no_candidate_as_slower(script):
    rows = [row(not_slower=True, speedup_best=2.0), row(verified=False)]

    assert script.summarize(rows)["kernelbench"]["all"]["share_not_slower"] == 0.5
    assert script.summarize(rows)["kernelbench"]["level1"]["problems"] == 2


def test_a_draw_is_of_the_problems_and_repeats_by_its_seed(script, tmp_path):
    for level in (1, 2):
        (tmp_path / f"KernelBench/level{level}").mkdir(parents=True)
        for number in range(1, 9):
            (tmp_path / f"KernelBench/level{level}/{number}_x.py").write_text("")
    options = argparse.Namespace(checkout=tmp_path, problems="", level="1,2", draw=5, seed=3)

    drawn = script.chosen_problems(options)

    assert len(set(drawn)) == 5 and drawn == script.chosen_problems(options)
    options.draw, options.problems = 0, "2/4,1/3"
    assert [one[:2] for one in script.chosen_problems(options)] == [(1, 3), (2, 4)]
