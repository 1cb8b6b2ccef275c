# SPDX-License-Identifier: Apache-2.0
"""What the programs of the adversary and the honest suite have in common."""

import argparse
import json
import pathlib


def parser(description, seconds):
    """Flags of a run on one device that may take `seconds`."""
    flags = argparse.ArgumentParser(description=description)
    flags.add_argument("--bin", required=True, help="folder of the programs")
    flags.add_argument("--device", default="opencl:0", help="opencl:N or cuda:N")
    flags.add_argument("--json", help="file for the outcome of every program")
    flags.add_argument("--ci", action="store_true", help="only the subset for CI")
    flags.add_argument("--only", default="", help="parts of names, separated by commas: those alone")
    flags.add_argument("--timeout", type=float, default=seconds, help="seconds for all")
    return flags


def is_wanted(name, only):
    """Whether `--only` leaves the program in."""
    return not only or any(part in name for part in only.split(","))


def report(path, summary, outcomes, complaints):
    """Prints the complaints and the summary; returns the exit code.

    `outcomes` by name go to the JSON file at `path`, if there is one.
    """
    for complaint in complaints:
        print(complaint)
    print(json.dumps(summary))
    if path:
        answer = {"summary": summary, "programs": outcomes}
        pathlib.Path(path).write_text(json.dumps(answer, indent=1) + "\n")
    return 1 if complaints else 0
