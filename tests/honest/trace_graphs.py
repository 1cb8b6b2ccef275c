# SPDX-License-Identifier: Apache-2.0
"""Writes the traced graph of each problem file: `trace_graphs.py FOLDER DEVICE FILE...`."""

import json
import pathlib
import sys
import warnings

import torch
from mtmc_reference.failure import ProblemFailure
from mtmc_reference.problem import ProblemFile
from mtmc_reference.trace import trace
from mtmc_reference.workload import draw


def main():
    warnings.simplefilter("ignore")
    folder = pathlib.Path(sys.argv[1])
    device = torch.device(sys.argv[2])
    for path in map(pathlib.Path, sys.argv[3:]):
        try:
            problem = ProblemFile(str(path))
            model = problem.build_model(0, device)
            graph = trace(problem, model, draw(problem, 0, device))[0]
        except ProblemFailure as failure:
            print(f"{path.stem}: {failure.reason}: {failure.message}", file=sys.stderr)
            continue
        (folder / f"{path.stem}.json").write_text(json.dumps(graph))
    return 0


if __name__ == "__main__":
    sys.exit(main())
