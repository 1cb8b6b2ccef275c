# SPDX-License-Identifier: Apache-2.0
"""Committed tables say what the results say, and nothing that was not measured."""

import json
import pathlib
import subprocess
import sys
import tarfile

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def tool(name, *arguments):
    done = subprocess.run(
        [sys.executable, str(_ROOT / "scripts" / name), *map(str, arguments)],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def comparison(slowdown, **outcomes):
    """A line of `mtmc-bench compare`."""
    counts = {"same": 0, "faster": 0, "slower": 0, "ambiguous": 0, **outcomes}
    return {"slowdown": slowdown, "baseline_seconds": 1e-4, "runs": sum(counts.values()),
            "median_noise_ratio": 0.003, "median_session_seconds": 0.04, "device": "a GPU",
            "driver": "1.2", **counts}


@pytest.fixture
def run(tmp_path):
    """What scripts/gpu-run leaves: a function from files' contents to a folder."""

    def write(name, **files):
        folder = tmp_path / name
        folder.mkdir()
        for file, content in files.items():
            text = content if isinstance(content, str) else json.dumps(content)
            (folder / f"{file}.json").write_text(text)
        return folder

    return write


@pytest.fixture
def table(tmp_path):
    """Makes the evaluator's table of result folders; returns rows by check, and the rest."""
    out = tmp_path / "evaluator.json"

    def make(*arguments):
        tool("evaluator-table", *arguments, "--out", out)
        document = json.loads(out.read_text())
        return {row["check"]: row for row in document["rows"]}, document

    return make


def test_programs_that_do_what_eager_does_have_rows(run, table):
    line = {"name": "1 launch", "runs": 4, "same": 3, "faster": 0, "slower": 0, "ambiguous": 1,
            "failed": 0, "noise_ratios": [[0.01, 0.02], [0.03, 0.01], [0.02, 0.02], [0.01, 0.01]]}
    folder = run("a", same=json.dumps(line) + "\n")

    rows, _ = table(folder, "--commit", "abc1234")

    row = rows["A/A against eager, 1 launch"]
    assert (row["cases"], row["held"]) == (4, 3)
    assert row["note"] == "1 ambiguous; noise 2 %"


def test_programs_that_were_misjudged_are_named(run, table):
    folder = run("a", adversary={
        "summary": {"device": "cuda:0", "adversary_attempts": 2, "adversary_accepted": 1},
        "attempts": {"A1": {"accepted": False}, "A2": {"accepted": True}}})

    rows, document = table(folder, "--commit", "abc")

    row = rows["adversary on cuda:0"]
    assert (row["cases"], row["held"]) == (2, 1)
    assert "A2" in row["note"] and "A1" not in row["note"]
    assert document["summary"]["adversary_accepted"] == 1


def test_comparisons_count_what_they_should_have_said(run, table):
    lines = [comparison(1.0, same=98, faster=1, ambiguous=1), comparison(1.03, slower=90, same=10),
             comparison(1.1, slower=100)]
    folder = run("a", compare="\n".join(map(json.dumps, lines)))

    rows, document = table(folder, "--commit", "abc")

    assert rows["A/A, kernel of 100 us"]["held"] == 98
    assert "1 faster" in rows["A/A, kernel of 100 us"]["note"]
    assert rows["3 % slower, kernel of 100 us"]["held"] == 90
    assert document["summary"] == {
        "aa_runs": 100, "aa_same": 98, "slower3_found": 90, "slower10_found": 100}
    assert document["device"] == "a GPU"


def test_later_folders_win_and_other_commits_are_said(run, table):
    old = run("old", throughput={"rows": [{"check": "candidates", "cases": 1}],
                                 "summary": {"candidates_per_hour": 1}})
    new = run("new", throughput={"rows": [{"check": "candidates", "cases": 2}],
                                 "summary": {"candidates_per_hour": 2}})

    rows, document = table(f"{old}@0ld", new, "--commit", "abc")
    assert rows["candidates"] == {"check": "candidates", "cases": 2, "note": ""}
    assert document["summary"]["candidates_per_hour"] == 2

    rows, _ = table(new, f"{old}@0ld", "--commit", "abc")
    assert rows["candidates"] == {"check": "candidates", "cases": 1, "note": "commit 0ld"}


def test_mutants_that_were_not_judged_do_not_count(run, table):
    folder = run("a", mutants={"programs": {}, "summary": {
        "device": "cuda:0", "seed": 7, "mutants": 500, "refused": 90, "accepted": 10,
        "dishonest_accepted": 2}})

    rows, _ = table(f"{folder}@0ld@on another GPU", "--commit", "abc")

    row = rows["mutants on cuda:0"]
    assert (row["cases"], row["held"]) == (100, 98)
    assert "seed 7, 8 accepted that do not differ, 400 more" in row["note"]
    assert row["note"].endswith("on another GPU; commit 0ld")


def test_rows_that_stay_keep_their_commit_and_their_figures(run, table):
    first = run("first", throughput={
        "rows": [{"check": "tune64", "seconds": 3.5}, {"check": "candidates", "cases": 1}],
        "summary": {"tune64_s": 3.5, "candidates_per_hour": 1}})
    table(first, "--commit", "0ld")
    second = run("second", throughput={"rows": [{"check": "candidates", "cases": 2}],
                                       "summary": {"candidates_per_hour": 2}})

    for commit in ("n3w", "n3w3r"):
        rows, document = table(second, "--keep", "tune64", "--commit", commit)
        assert rows["tune64"] == {"check": "tune64", "seconds": 3.5, "note": "commit 0ld"}
        assert document["summary"] == {"tune64_s": 3.5, "candidates_per_hour": 2}


def test_recovery_comes_from_the_log(run, table, tmp_path):
    fault = {"fault": "hang", "isolation": "confined", "samples": 12, "crash_recovery_ms_p50": 7.0,
             "crash_recovery_ms_p95": 31.0, "until_known_ms_p50": 200.0}
    log = tmp_path / "fault.log"
    log.write_text("PASS something\n" + json.dumps(fault) + "\n")
    folder = run("a")
    with tarfile.open(folder / "logs.tar.gz", "w:gz") as archive:
        archive.add(log, "logs/fault.log")

    rows, document = table(folder, "--commit", "abc")

    assert rows["recovery from hang, confined"]["p95_ms"] == 31.0
    assert "200 ms" in rows["recovery from hang, confined"]["note"]
    assert document["summary"]["crash_recovery_ms_p95"] == 31.0


def test_the_intake_table_has_a_row_for_each_problem(tmp_path):
    results, out = tmp_path / "results.json", tmp_path / "intake.json"
    entry = {"level": 1, "name": "19_ReLU", "outcome": "hit", "why": "the input passes", "flaws": ["a"],
             "passing_probes": ["b"], "dropped": ["NEGATED"], "failure": ""}
    alarm = {**entry, "name": "2_Matmul", "outcome": "false_alarm", "why": "", "dropped": []}
    results.write_text(json.dumps({
        "summary": {"device": "cuda:0", "seconds": 9.5, "hit": 1, "false_alarm": 1},
        "rows": [entry, alarm]}))

    tool("intake-table", results, "--commit", "abc", "--device", "a GPU", "--version", "torch=2", "--out", out)

    document = json.loads(out.read_text())
    assert document["rows"][0] == {"problem": "level1/19_ReLU", "outcome": "hit",
                                   "known_flaw": "the input passes", "found": ["a", "b", "dropped NEGATED"]}
    assert document["rows"][1]["outcome"] == "false alarm"
    assert document["summary"] == {"problems": 2, "hit": 1, "false_alarm": 1, "seconds": 9.5}
    assert document["versions"] == {"torch": "2"}


def test_the_committed_pages_are_those_of_the_committed_results():
    tool("render-benchmarks", "--check")
