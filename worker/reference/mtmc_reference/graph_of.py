# SPDX-License-Identifier: Apache-2.0
"""`python -m mtmc_reference.graph_of --out FOLDER PROBLEM...`: writes traced graphs.

FOLDER/NAME.json for each NAME.py. Nothing is computed: the inputs have the shapes and
types that `get_inputs` gives them and no content, so that a problem of many gigabytes
takes a second and no memory of the host. What is wrong with a problem is said on
standard error; the exit code is then 3.
"""

import argparse
import json
import pathlib
import sys
import warnings

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from . import workload
from .failure import ProblemFailure
from .problem import ProblemFile
from .trace import trace

EXIT_UNTRACEABLE = 3


def graph_of(path, device="cpu"):
    """mtmc.v1.Graph of the problem file at `path`, as a dictionary; raises ProblemFailure."""
    problem, device = ProblemFile(str(path)), torch.device(device)
    model = problem.build_model(0, device)
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            inputs = workload.draw(problem, 0, device)
    except ProblemFailure:
        inputs = workload.draw(problem, 0, device)
    return trace(problem, model, inputs)[0]


def main():
    parser = argparse.ArgumentParser(prog="graph_of", description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="+", type=pathlib.Path, metavar="PROBLEM")
    parser.add_argument("--out", required=True, type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--device", default="cpu", help="where the model is: cpu or cuda:N")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    is_well = True
    for path in options.problems:
        try:
            graph = graph_of(path, options.device)
        except ProblemFailure as failure:
            print(f"{path.stem}: {failure.reason}: {failure.message}", file=sys.stderr)
            is_well = False
            continue
        (options.out / f"{path.stem}.json").write_text(json.dumps(graph))
    return 0 if is_well else EXIT_UNTRACEABLE


if __name__ == "__main__":
    sys.exit(main())
