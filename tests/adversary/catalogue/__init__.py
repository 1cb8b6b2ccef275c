# SPDX-License-Identifier: Apache-2.0
"""The catalogue of known cheats, row by row, and how each is tried here.

Rows are those of the catalogue of exploits that the published evaluators met:
A timing, B provenance, C numerics and semantics, D the grader itself, E benign
but off-task; F is what the values of a file hide from an evaluator. Where a cheat needs host code, which no program of ours has, its
nearest relative is tried: what a text can at most say. An attempt that is merely
legal is judged by what it gains (`judge`).
"""

import pathlib

from . import generality, grader, numerics, offtask, provenance, timing
from .attempt import TWINS

# Of the attempts' programs.
FOLDER = pathlib.Path(__file__).parent.parent
PROBLEMS = FOLDER / "problems"

ROWS = {
    **timing.ROWS,
    **provenance.ROWS,
    **numerics.ROWS,
    **grader.ROWS,
    **offtask.ROWS,
    **generality.ROWS,
}

__all__ = ["FOLDER", "PROBLEMS", "ROWS", "TWINS"]
