# SPDX-License-Identifier: Apache-2.0
"""Writes the traced graph of every example problem, and of those beside this file, as JSON
into a folder.

    python trace_problems.py REPOSITORY FOLDER
"""

import json
import pathlib
import sys

repository, folder = map(pathlib.Path, sys.argv[1:3])
sys.path.insert(0, str(repository / "worker/reference"))

from mtmc_reference.problem import ProblemFile  # noqa: E402
from mtmc_reference.trace import trace  # noqa: E402

for path in sorted([*(repository / "examples/problems").glob("*.py"),
                    *(pathlib.Path(__file__).parent / "problems").glob("*.py")]):  # fmt: skip
    problem = ProblemFile(str(path))
    model = problem.build_model(0, "cpu")
    graph = trace(problem, model, problem.draw())[0]
    (folder / f"{path.stem}.json").write_text(json.dumps(graph))
