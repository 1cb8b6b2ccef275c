# SPDX-License-Identifier: Apache-2.0
"""`python -m mtmc_reference.stopwatch FILE --device cuda:0`: where verification's time goes.

First scans on the device are checked against the host's. Then every part of preparing
and comparing the problem in FILE is timed alone: the shortest of some repetitions, and
the bandwidth at the bytes that the part has to move. At last candidates are verified as
the worker does it, with the model itself as the candidate in a child process, and the
times of each workload are printed.
"""

import argparse
import dataclasses
import functools
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time

import torch

from . import compare, distribution, scan_kernels, share
from .execution import Execution, state_tensors
from .flaws import distribution_keys
from .precision import Arithmetic
from .problem import ProblemFile
from .session import Session
from .trace import trace
from .workload import Key, Workloads, total_bytes

_SEED = 0
_REPETITIONS = 3
_CHECKED_ELEMENTS = 1_000_003
_KEYS = [Key(0), Key(1), Key(2), *distribution_keys(distribution.DISTRIBUTIONS)]


class _Problem:
    """The traced problem with its public inputs and their outputs."""

    def __init__(self, path, device):
        self.device = device
        problem = ProblemFile(path)
        self.model = problem.build_model(_SEED, device)
        self.workloads = Workloads(problem, _SEED, device)
        self.inputs = self.workloads.draw_public()
        self.graph, _, _ = trace(problem, self.model, self.inputs)
        self.execution = Execution(problem, self.model, self.graph, _SEED, device)

    def run(self, inputs):
        return self.execution.run(inputs, Arithmetic.STRICT)


def _check_scans(device):
    """Ends the program where a scan on the device finds other numbers than on the host."""
    noise = torch.Generator().manual_seed(_SEED)
    for y_type, r_type in itertools.product(scan_kernels.FLOATS, repeat=2):
        r = torch.randn(_CHECKED_ELEMENTS, generator=noise).to(r_type)
        y = (r + 1e-3 * torch.randn(r.shape, generator=noise)).to(y_type)
        special = y.clone()
        special[7] = math.inf
        pairs = [(y, r), (y[1:], r[1:]), (y, special)]
        there = compare.errors([(a.to(device), b.to(device)) for a, b in pairs])
        for one, here in zip(there, compare.errors(pairs)):
            if dataclasses.replace(one, swapped=None) != dataclasses.replace(here, swapped=None):
                raise SystemExit(f"scan of {y_type} against {r_type}: {one}, on the host {here}")
    kind = "kernels" if scan_kernels.takes_float(y.to(device)) else "operators"
    print(f"scans by {kind} are right", flush=True)


def _synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _seconds(function, device):
    _synchronize(device)
    start = time.perf_counter()
    function()
    _synchronize(device)
    return time.perf_counter() - start


def _print_part(name, function, size, device):
    """Times `function`, which has to move `size` bytes."""
    function()
    seconds = min(_seconds(function, device) for _ in range(_REPETITIONS))
    print(f"{name:32} {seconds * 1e3:10.3f} ms {size / seconds / 1e9:9.1f} GB/s", flush=True)


def _time_parts(problem, scratch):
    device, inputs = problem.device, problem.inputs
    size = total_bytes(inputs)

    def show(name, function, moved):
        _print_part(name, function, moved, device)

    show("draw", lambda: problem.workloads.draw_own(Key(1)), size)
    changer = distribution.Changer([inputs])
    for name in distribution.DISTRIBUTIONS:
        levels = dict.fromkeys(changer.ways(name), 0)
        if not levels:
            continue
        changed = problem.workloads.draw_own(Key(1))
        short = name.removeprefix("DISTRIBUTION_").lower()
        change = functools.partial(changer.apply, name, changed, levels, _SEED)
        show(f"change: {short}", change, 2 * size)
        del change, changed
    outputs = problem.run(inputs)
    produced = total_bytes(outputs)
    show("strict run", lambda: problem.run(inputs), size + produced)
    show("spread", lambda: compare.spreads(outputs), produced)
    named = [(f"x{i}", x) for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)]
    show("publish", lambda: share.publish(named, scratch, device).release(), 3 * size)
    publication = share.publish(named, scratch, device)
    show("damage check", lambda: share.damaged([publication]), size)
    publication.release()
    share.return_spare_memory(device)
    _time_comparison(problem, outputs, show)


def _time_comparison(problem, outputs, show):
    pairs = list(zip(problem.run(problem.inputs), outputs))
    size = 2 * total_bytes(outputs)
    show("scan", lambda: compare.errors(pairs), size)
    show("allclose", lambda: compare.are_allclose(pairs, 1e-4), size)
    show("near", lambda: [compare.relative_error(y, r) for y, r in pairs], size)
    show("copy of the outputs", lambda: [y.copy_(r) for y, r in pairs], size)


def _run_child(path, device, scratch):
    """Plays the runner: shared inputs in by line, outputs out by line."""
    problem = _Problem(path, device)
    arguments, problem.inputs = problem.inputs, None
    places = [
        (entry["name"], entry["argumentIndex"])
        for entry in problem.graph["inputs"]
        if entry["kind"] == "KIND_USER_INPUT"
    ]
    entries = [
        entry
        for entry in problem.graph["inputs"]
        if entry["kind"] in ("KIND_PARAMETER", "KIND_BUFFER")
    ]
    found = state_tensors(problem.model, [entry["target"] for entry in entries])
    states = [(entry["name"], found[entry["target"]].detach()) for entry in entries]
    outputs = [entry["name"] for entry in problem.graph["outputs"]]
    publication = None
    for line in sys.stdin:
        with share.opened(json.loads(line), device) as tensors:
            for name, index in places:
                arguments[index] = tensors[name]
            for name, tensor in states:
                tensor.copy_(tensors[name])
            values = problem.run(arguments)
            _synchronize(device)
            for _, index in places:
                arguments[index] = None
        if publication:
            publication.release()
        publication = share.publish(list(zip(outputs, values)), scratch, device)
        del values
        print(json.dumps(publication.messages), flush=True)
    if publication:
        publication.release()


class _Runner:
    """The child process that computes outputs."""

    def __init__(self, path, device, scratch):
        options = ["--child", "--device", str(device), "--scratch", scratch]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mtmc_reference.stopwatch", path, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def outputs(self, inputs):
        self._process.stdin.write(json.dumps(inputs) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def stop(self):
        self._process.stdin.close()
        self._process.wait()


def _verify(session, runner, key):
    """(seconds to prepare, to compare) one workload, None where it is dropped."""
    request = {"workload": key.seed_index, "distribution": key.distribution}
    start = time.perf_counter()
    prepared = session.prepare(request)
    preparing = time.perf_counter() - start
    if "dropped" in prepared:
        return None
    outputs = runner.outputs(prepared["inputs"])
    start = time.perf_counter()
    answer = session.compare({"outputs": outputs, "prepared": prepared["prepared"]})
    comparing = time.perf_counter() - start
    if not answer["isCorrect"]:
        raise SystemExit(f"{key} is wrong: {answer['message']}")
    return preparing, comparing


def _time_candidates(path, device, scratch, count):
    session = Session(scratch)
    start = time.perf_counter()
    session.load({"path": path, "device": str(device)})
    print(f"{'load':32} {(time.perf_counter() - start) * 1e3:10.3f} ms", flush=True)
    runner = _Runner(path, device, scratch)
    _time_opening(session, runner, device)
    for number in range(1, count + 1):
        totals = [0.0, 0.0]
        for key in _KEYS:
            seconds = _verify(session, runner, key)
            if seconds is None:
                continue
            totals = [total + one for total, one in zip(totals, seconds)]
            short = key.distribution.removeprefix("DISTRIBUTION_").lower()
            name = f"seed {key.seed_index}" if key.is_unchanged else short
            _print_times(f"candidate {number}: {name}", seconds)
        _print_times(f"candidate {number}: all", totals)
    runner.stop()
    session.close()


def _time_opening(session, runner, device):
    outputs = runner.outputs(session.prepare({})["inputs"])

    def open_and_close():
        with share.opened(outputs, device):
            pass

    open_and_close()
    seconds = min(_seconds(open_and_close, device) for _ in range(_REPETITIONS))
    print(f"{'open the outputs':32} {seconds * 1e3:10.3f} ms", flush=True)


def _print_times(name, seconds):
    preparing, comparing = (one * 1e3 for one in seconds)
    print(f"{name:32} prepare {preparing:9.3f} ms  compare {comparing:9.3f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="a problem in KernelBench form")
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--candidates", type=int, default=3, help="how many are verified")
    parser.add_argument("--scratch", help="folder for shared files; a temporary one by default")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    device = torch.device(options.device)
    if options.child:
        _run_child(options.file, device, options.scratch)
        return
    with tempfile.TemporaryDirectory() as folder:
        scratch = options.scratch or folder
        _check_scans(device)
        _time_parts(_Problem(options.file, device), scratch)
        if device.type == "cuda":
            torch.cuda.empty_cache()
        _time_candidates(options.file, device, scratch, options.candidates)


if __name__ == "__main__":
    main()
