# SPDX-License-Identifier: Apache-2.0
"""What a row of the catalogue is made of, and words that several rows share."""

import dataclasses
import pathlib

import judges
from harness import FAST


@dataclasses.dataclass(frozen=True)
class Attempt:
    """One program of a row."""

    # Path below this folder; `.kernel` texts exist in both dialects.
    program: str
    # Name of a file in `problems`.
    problem: str
    # Kinds of failure of which one must come, or a judge of judges.py.
    refused_by: object
    # What would let the cheat through if it were missing.
    defence: str
    # Words of the text and what stands for them.
    replace: dict = dataclasses.field(default_factory=dict)
    # Tells attempts with one program apart.
    variant: str = ""
    options: dict = dataclasses.field(default_factory=dict)
    calls: tuple = ()
    precision: str = "kernelbench"
    randomize: bool = False
    # Part of the subset that runs in CI.
    in_ci: bool = True
    # Dialects in which it is tried; empty: all in which it can be written.
    only: tuple = ()

    @property
    def dialects(self):
        """Dialects in which it is tried."""
        if self.only:
            return self.only
        suffix = pathlib.Path(self.program).suffix
        return {".cl": ("opencl",), ".cu": ("cuda",)}.get(suffix, ("opencl", "cuda"))

    def all_options(self):
        """Options of the evaluation."""
        return {**FAST, **self.options}


@dataclasses.dataclass(frozen=True)
class Row:
    """One cheat of the catalogue."""

    title: str
    attempts: tuple


def attempt(program, problem, refused_by, defence, **fields):
    """An Attempt; `refused_by` is a judge, or kinds of failure with spaces between."""
    kinds = frozenset(refused_by.split()) if isinstance(refused_by, str) else refused_by
    return Attempt(program, problem, kinds, defence, **fields)


_FORGED = "CRASH LAUNCH OUT_OF_BOUNDS"


def forged(program, defence, **fields):
    """Attempts on an address that was made up. A CPU has nothing there; where a GPU has,
    nothing in the context decides anything."""
    harmless = judges.refused_or_right(_FORGED + " WRONG_RESULT")
    return (
        attempt(program, "relu", _FORGED, defence, only=("opencl",), **fields),
        attempt(program, "relu", harmless, defence, only=("cuda",), **fields),
    )


PARSER = "parser: the format has no host code, streams or conditions"
CHECKER = "plan checker"
SOURCE = "source checks: a text reaches nothing beyond the device"
CUBIN = "cubin scan: a module keeps no state and calls no runtime"
CONTENTS = "fresh contents: outputs of timed calls are compared with verified ones"
POISON = "outputs and scratch are poisoned before every execution"
SCRUB = "on-chip memory is scrubbed before every timed execution"
ORACLE = "comparison with the fp64 run on hidden seeds"
DISTRIBUTIONS = "hidden distributions"
REDZONES = "redzones around every buffer"
CHECKSUMS = "checksums of inputs and weights"
DEADLINES = "deadlines that end the whole process group"

# One program several times: on a busy host one of them was hardly disturbed.
TWINS = ("A0.row_sine", *(f"D11.row_sine.copy{number}" for number in (1, 2, 3)))
SINE = judges.gains_nothing(TWINS, 0.6)
