# SPDX-License-Identifier: Apache-2.0
"""The programs that mutants are made of: those of the honest suite in small sizes.

What the built-in coder prints for small problems and for the examples, whose extents
are made small here, and the hand-written programs of tests/honest.
"""

import dataclasses
import importlib.util
import os
import pathlib
import random
import re
import subprocess
import sys

_TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(_TESTS / "honest"), str(_TESTS / "adversary")]

import engine as engines  # noqa: E402  (the path is set above)
import extra_problems  # noqa: E402
import harness  # noqa: E402
import problems  # noqa: E402

_EXAMPLES = _TESTS.parent / "examples/problems"
# Extents of an example are halved until they are no larger.
_EXTENT = 33
_EXTENTS = re.compile(r"^([A-Z_]+ = )(\d+)$", re.MULTILINE)
_SOME_UNTRACEABLE = 3
# A small program that works takes no second; one that waits for itself takes all of it.
_VERIFY_TIMEOUT = "30s"


@dataclasses.dataclass(frozen=True)
class Honest:
    """An honest program of a small problem."""

    name: str
    problem: pathlib.Path
    graph: pathlib.Path
    text: str
    dialect: str
    precision: str = "kernelbench"
    randomize: bool = False

    def case(self, name, text):
        """A case of `text`, which was made of this program."""
        return harness.Case(
            name=name,
            problem=self.problem,
            text=text,
            dialect=self.dialect,
            options={**harness.FAST, "max_variants": 1, "verify_timeout": _VERIFY_TIMEOUT},
            allowed_calls=engines.calls_of(text),
            precision=self.precision,
            randomize=self.randomize,
        )


def gather(bin_folder, device, folder, *, walks, seed, most):
    """The honest programs for `device` of at most `most` problems, drawn by `seed`;
    problems and graphs are written to `folder`."""
    dialect = harness.dialect_of(device)
    wanted = {p.name: p for p in (*problems.PROBLEMS, *extra_problems.PROBLEMS)}
    wanted = {n: p for n, p in wanted.items() if not p.needs_bytes and not _lacks(p, dialect)}
    for name, problem in wanted.items():
        (folder / f"{name}.py").write_text(problem.source)
    for path in _EXAMPLES.glob("*.py"):
        (folder / path.name).write_text(_EXTENTS.sub(_smaller, path.read_text()))
    paths = sorted(folder.glob("*.py"))
    for path in random.Random(seed).sample(paths, max(len(paths) - most, 0)):
        path.unlink()
    _trace(bin_folder, folder)
    graphs = sorted(folder.glob("*.json"))
    coder = engines.Engine(bin_folder, dialect)
    printed = [
        (graph.stem, variant, text)
        for graph, variant, text in engines.all_programs(coder, graphs, walks, depth=4, seed=seed)
    ]
    written = _hand_written(dialect)
    printed += [(problem, name, text) for name, (problem, text) in written.items()]
    found = []
    for problem, variant, text in sorted(printed):
        graph = folder / f"{problem}.json"
        # A call alone has nothing to change.
        if not graph.exists() or "//@ launch" not in text:
            continue
        source = wanted.get(problem)
        found.append(
            Honest(
                name=f"{problem}.{variant}",
                problem=folder / f"{problem}.py",
                graph=graph,
                text=text,
                dialect=dialect,
                precision=source.precision if source else "kernelbench",
                randomize=source.randomize if source else False,
            )
        )
    return found


def _lacks(problem, dialect):
    return problem.is_for_gpu and dialect == "opencl"


def _smaller(found):
    extent = int(found[2])
    while extent > _EXTENT:
        extent //= 2
    return f"{found[1]}{extent}"


def _trace(bin_folder, folder):
    package = pathlib.Path(bin_folder).resolve().parent / "share/mtmc/python"
    command = [_python(), "-m", "mtmc_reference.graph_of", "--out", folder]
    done = subprocess.run(
        [*command, *sorted(folder.glob("*.py"))],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "PYTHONPATH": str(package)},
    )
    if done.returncode != _SOME_UNTRACEABLE:
        done.check_returncode()


def _hand_written(dialect):
    """(problem, text) by name of the hand-written programs."""
    place = _TESTS / "honest/run.py"
    spec = importlib.util.spec_from_file_location("honest_run", place)
    honest = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules["honest_run"] = honest
    spec.loader.exec_module(honest)
    texts = honest.hand_written(dialect)
    return {name: (honest._HAND_WRITTEN[name], text) for name, text in texts.items()}


def _python():
    return os.environ.get("MTMC_PYTHON") or sys.executable
