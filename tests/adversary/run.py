# SPDX-License-Identifier: Apache-2.0
"""Tries every cheat of the catalogue on one device.

    python run.py --bin build/release/bin --device opencl:0 --json adversary.json

Prints one line for each attempt that succeeded, and the counts. Needs PyTorch in
MTMC_PYTHON or in the interpreter that runs it.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import catalogue
import command_line
import harness
import judges
import public_values

# Sizes that make a replay worth it and an honest run short.
_SIZES = {
    "opencl": {
        "COLUMNS": "8192",
        "STRIDE": "509",
        "ROUNDS": "20",
        "ROWS": "256",
        "WIDTH": "1024",
    },
    "cuda": {
        "COLUMNS": "131072",
        "STRIDE": "8191",
        "ROUNDS": "2000",
        "ROWS": "2048",
        "WIDTH": "4096",
    },
}


def problem_of(attempt, dialect):
    """The attempt's problem, in the size for `dialect` where there is one."""
    special = catalogue.PROBLEMS / f"{attempt.problem}_{dialect}.py"
    return special if special.exists() else catalogue.PROBLEMS / f"{attempt.problem}.py"


def cases_of(device, is_ci, only=""):
    """(row, name, attempt, case) of every attempt that `device` can run."""
    dialect = harness.dialect_of(device)
    found = []
    for row, entry in catalogue.ROWS.items():
        for attempt in entry.attempts:
            if dialect not in attempt.dialects or (is_ci and not attempt.in_ci):
                continue
            stem = pathlib.Path(attempt.program).stem
            name = ".".join(part for part in (row, stem, attempt.variant) if part)
            replace = {**attempt.replace, **_SIZES[dialect]}
            # Others are compared with the honest twins.
            if not (command_line.is_wanted(name, only) or name in catalogue.TWINS):
                continue
            text = harness.translate(catalogue.FOLDER / attempt.program, dialect, replace)
            text = public_values.filled(text, problem_of(attempt, dialect), python())
            case = harness.Case(
                name=name,
                problem=problem_of(attempt, dialect),
                text=text,
                dialect=dialect,
                options=attempt.all_options(),
                allowed_calls=attempt.calls,
                precision=attempt.precision,
                randomize=attempt.randomize,
            )
            found.append((row, name, attempt, case))
    # Problems together; what must come last stays last.
    return sorted(found, key=lambda one: (one[0] == "D7", one[2].problem, one[3].randomize))


def python():
    """The interpreter that has PyTorch."""
    return os.environ.get("MTMC_PYTHON") or sys.executable


def inspect(bin_folder, problem):
    """What loading `problem` tells about it, on a CPU."""
    package = pathlib.Path(bin_folder).resolve().parent / "share/mtmc/python"
    request = {"sequence": 1, "load": {"path": str(problem), "problem": {}, "device": "cpu"}}
    with tempfile.TemporaryDirectory(prefix="mtmc-inspect-") as scratch:
        done = subprocess.run(
            [python(), "-m", "mtmc_reference", "--scratch", scratch],
            input=json.dumps(request) + "\n",
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env={**os.environ, "PYTHONPATH": str(package)},
        )
    return json.loads(done.stdout.splitlines()[0]).get("loaded", {}).get("inspection", {})


def judge_of(attempt):
    """The attempt's judge; a set of kinds means refused."""
    if isinstance(attempt.refused_by, frozenset):
        return judges.refused(attempt.refused_by)
    return attempt.refused_by


def run(bin_folder, device, is_ci, timeout, only=""):
    """(summary, every attempt's outcome by name)."""
    entries = cases_of(device, is_ci, only)
    results = harness.evaluate(bin_folder, device, [case for *_, case in entries], timeout)
    results["inspection:constant"] = inspect(bin_folder, catalogue.PROBLEMS / "constant.py")
    outcomes = {}
    for row, name, attempt, _ in entries:
        result = results.get(name)
        reason = judge_of(attempt)(result, results) if result else "no result"
        outcomes[name] = {
            "row": row,
            "cheat": catalogue.ROWS[row].title,
            "defence": attempt.defence,
            "outcome": harness.describe(result),
            "accepted": reason,
            "wall_seconds": (result or {}).get("wall_seconds"),
        }
    rows = {outcome["row"] for outcome in outcomes.values()} - {"A0"}
    bad = {outcome["row"] for outcome in outcomes.values() if outcome["accepted"]}
    summary = {
        "device": device,
        "adversary_rows": len(rows),
        "adversary_attempts": len(outcomes),
        "adversary_accepted": len(bad),
    }
    return summary, outcomes


def main():
    flags = command_line.parser(__doc__.splitlines()[0], seconds=1500).parse_args()
    summary, outcomes = run(flags.bin, flags.device, flags.ci, flags.timeout, flags.only)
    complaints = [
        f"ACCEPTED {name} ({outcome['cheat']}): {outcome['accepted']}"
        for name, outcome in outcomes.items()
        if outcome["accepted"]
    ]
    return command_line.report(flags.json, summary, outcomes, complaints)


if __name__ == "__main__":
    sys.exit(main())
