# SPDX-License-Identifier: Apache-2.0
"""Whether a program's results differ from the reference for some legal input.

    python truth.py --bin build/release/bin REQUEST.json

REQUEST is a list with an entry for each problem: its path, its graph, the dialect, and
`honest` and `mutants` (texts, the latter with the index of their original). Prints one
JSON line per mutant, at once, so that one that kills this process costs no other.
Decided by running both on a device of the dialect, and PyTorch in fp64 beside them;
nothing of the evaluator is used but the way in which the public seed is drawn.
"""

import argparse
import functools
import json
import pathlib
import re
import signal
import sys

import draws
import numpy
import torch
from laid_out import program_runner

# An honest program that is this far off on a draw shows nothing there.
_UNFIT = 3e-3
# What a mutant must exceed: far beyond the tolerance of the class, and 10 times what
# its original has.
_CLEARLY = 1e-3
_TIMES = 10
# For elements that an honest program has right in themselves.
_OWN_CLEARLY = 0.1
_SEEDS = 2
# Most that a mutant may take.
_SECONDS = 40
# Bytes around and in what a program has to write. The first two are random words.
_FILLINGS = ("random", "random", "0xFF", "0x7B", "zeros", "equal")


def filling(kind, seed):
    """A function that draws that many bytes."""
    generator = numpy.random.default_rng(seed)
    constants = {"0xFF": 0xFF, "0x7B": 0x7B, "zeros": 0}

    def draw(count):
        if kind in constants:
            return numpy.full(count, constants[kind], numpy.uint8)
        if kind == "equal":
            word = generator.integers(0, 256, 4, numpy.uint8)
            return numpy.tile(word, count // 4 + 1)[:count].copy()
        return generator.integers(0, 256, count, numpy.uint8)

    return draw


class Reference:
    """Draws of a problem with what PyTorch says of each in fp64."""

    def __init__(self, graph, public):
        roles = {
            one["name"]: "input" if one["kind"] == "KIND_USER_INPUT" else "weight"
            for one in graph["inputs"]
        }
        ignores = any(re.search("cross_entropy|nll_loss", node["op"]) for node in graph["nodes"])
        picks = any(re.search("arg(max|min)|(max|min).dim|topk|sort", n["op"]) for n in graph["nodes"])
        self.draws = []
        for seed in range(_SEEDS):
            for kind in draws.KINDS[: None if seed == 0 else 5]:
                values = draws.draw(public, roles, kind, 1000 * seed + len(self.draws), ignores)
                exact = _exact(graph, values)
                if exact and picks and kind[0] in draws.TIED:
                    # Which of equal values is picked is nobody's mistake.
                    exact = {n: v for n, v in exact.items() if v.is_floating_point()}
                if exact:
                    self.draws.append((kind, values, exact))


def _exact(graph, values):
    """Outputs in fp64; None where the reference refuses, or has no finite answer."""
    try:
        exact = program_runner.run_graph(graph, values, torch.float64)
    except (RuntimeError, IndexError, ValueError):
        return None
    floats = [value for value in exact.values() if value.dtype.is_floating_point]
    return exact if all(torch.isfinite(value).all() for value in floats) else None


def errors(outputs, exact):
    """Per output (worst error beside the output's size, worst of an element beside itself)."""
    found = {}
    for name, wanted in exact.items():
        got = outputs[name].reshape(wanted.shape)
        if not wanted.dtype.is_floating_point:
            wrong = 0.0 if torch.equal(got.to(wanted.dtype), wanted) else 1.0
            found[name] = (wrong, wrong)
            continue
        got, wanted = got.double(), wanted.double()
        apart = (got - wanted).abs()
        apart = torch.where(torch.isfinite(got), apart, torch.full_like(apart, 1e30))
        size = wanted.pow(2).mean().sqrt() + 1e-30
        beside = (apart / (wanted.abs() + size)).max() if apart.numel() else 0.0
        own = (apart / (wanted.abs() + 1e-30)).max() if apart.numel() else 0.0
        found[name] = (float(beside), float(own))
    return found


def is_clear(mine, honest):
    """In which output `mine` is clearly wrong where `honest` is not; empty if in none."""
    for name, (beside, own) in mine.items():
        honest_beside, honest_own = honest[name]
        if beside > max(_CLEARLY, _TIMES * honest_beside):
            return f"{name} is off by {beside:.2g} of its size, the original by {honest_beside:.1g}"
        if own > _OWN_CLEARLY and honest_own < 1e-3:
            return f"elements of {name} are off by {own:.2g} of themselves"
    return ""


def public_values(bin_folder, problem_path, randomize, graph):
    """Values of the public seed by the graph's names, as the evaluator draws them."""
    sys.path.insert(0, str(pathlib.Path(bin_folder).resolve().parent / "share/mtmc/python"))
    from mtmc_reference import workload
    from mtmc_reference.problem import ProblemFile

    problem = ProblemFile(str(problem_path))
    host = torch.device("cpu")
    model = problem.build_model(0, host, randomize)
    inputs = [value for value in workload.draw(problem, 0, host) if isinstance(value, torch.Tensor)]
    values, used = {}, 0
    for one in graph["inputs"]:
        if one["kind"] == "KIND_USER_INPUT":
            values[one["name"]] = inputs[used]
            used += 1
        else:
            found = functools.reduce(getattr, one["target"].split("."), model)
            values[one["name"]] = found.detach().clone()
    return values


class Judge:
    """Compares mutants of one problem with their originals."""

    def __init__(self, reference, dialect):
        self._reference = reference
        self._device, self._not_built = _device(dialect)
        self._honest = {}

    def verdict(self, original, mutant):
        """`differs` (always), `remembers` (only where memory is not random), `same` or
        `invalid`, with the reason."""
        honest = self._fit(original)
        if not honest:
            return "invalid", "its original is right on no draw"
        try:
            loaded = self._device.load(mutant)
        except self._not_built as error:
            return "invalid", "does not compile: " + str(error).strip()[:200]
        for number, kind in enumerate(_FILLINGS):
            for draw, values, exact, theirs in honest if number < 1 else honest[:3]:
                outputs = loaded.run(values, filling(kind, number))
                reason = is_clear(errors(outputs, exact), theirs)
                if reason:
                    name = "differs" if kind == "random" else "remembers"
                    where = f"inputs {draw[0]}, parameters {draw[1]}, memory {kind}"
                    return name, f"{reason} ({where})"
        return "same", f"right on {len(honest)} draws"

    def _fit(self, original):
        """(draw, values, exact, errors of the honest program) where it is right."""
        if original not in self._honest:
            loaded, fit = self._device.load(original), []
            for draw, values, exact in self._reference.draws:
                found = errors(loaded.run(values, filling("random", 7)), exact)
                if all(beside < _UNFIT for beside, _ in found.values()):
                    fit.append((draw, values, exact, found))
            self._honest[original] = fit
        return self._honest[original]


def _device(dialect):
    """(device, what it raises for a program that it does not take)."""
    if dialect == "cuda":
        import cuda_run

        return cuda_run.Device(), cuda_run.NotBuilt
    import opencl_run
    import pyopencl

    return opencl_run.Device(), pyopencl.Error


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--skip", type=int, default=0, help="mutants that were judged before")
    parser.add_argument("request", type=pathlib.Path)
    flags = parser.parse_args()
    torch.set_num_threads(1)
    left = flags.skip
    for group in json.loads(flags.request.read_text()):
        mutants = group["mutants"][left:]
        left = max(left - len(group["mutants"]), 0)
        if mutants:
            _judge_group(flags.bin, group, mutants)


def _judge_group(bin_folder, group, mutants):
    graph = program_runner.load_graph(group["graph"])
    public = public_values(bin_folder, group["problem"], group["randomize"], graph)
    judge = Judge(Reference(graph, public), group["dialect"])
    for mutant in mutants:
        # An endless kernel ends this process, whatever it waits in.
        signal.alarm(_SECONDS)
        verdict, reason = judge.verdict(group["honest"][mutant["original"]], mutant["text"])
        print(json.dumps({"truth": verdict, "reason": reason}), flush=True)


if __name__ == "__main__":
    main()
