# SPDX-License-Identifier: Apache-2.0
"""Writes the traced graph of each problem file: `trace_graphs.py FOLDER FILE...`."""

import json
import pathlib
import sys
import warnings

from mtmc_reference.failure import ProblemFailure
from mtmc_reference.problem import ProblemFile
from mtmc_reference.trace import trace


def main():
    warnings.simplefilter("ignore")
    folder = pathlib.Path(sys.argv[1])
    for path in map(pathlib.Path, sys.argv[2:]):
        try:
            problem = ProblemFile(str(path))
            model = problem.build_model(0, "cpu")
            graph = trace(problem, model, problem.draw())[0]
        except ProblemFailure as failure:
            print(f"{path.stem}: {failure.reason}: {failure.message}", file=sys.stderr)
            continue
        (folder / f"{path.stem}.json").write_text(json.dumps(graph))
    return 0


if __name__ == "__main__":
    sys.exit(main())
