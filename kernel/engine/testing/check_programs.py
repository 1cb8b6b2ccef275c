# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs the programs that a walk left behind.

    python check_programs.py GRAPHS PROGRAMS

PROGRAMS holds `GRAPH.STEP.cuda` and `GRAPH.STEP.opencl` texts. Every CUDA text
must compile for sm_90 without spills; every OpenCL text must build on PoCL and
give PyTorch's results, within four times single precision's own error or 5e-5
of the mean magnitude.
"""

import pathlib
import sys

import torch

from program_runner import Nvrtc, OpenClRunner, Program, check_values, load_graph, random_inputs, spills

torch.set_num_threads(2)
graphs, programs = map(pathlib.Path, sys.argv[1:3])
failures = 0


def fail(path, why):
    global failures
    failures += 1
    print(f"{path.name}: {why}", flush=True)


nvrtc = Nvrtc()
for path in sorted(programs.glob("*.cuda")):
    try:
        spilled = spills(nvrtc.compile(Program(path.read_text())))
        if spilled:
            fail(path, f"spills {spilled} bytes")
    except RuntimeError as error:
        fail(path, str(error)[:2000])

runner = OpenClRunner()
cache = {}
for path in sorted(programs.glob("*.opencl")):
    name = path.name.split(".")[0]
    if name not in cache:
        graph = load_graph(graphs / f"{name}.json")
        cache = {name: (graph, random_inputs(graph))}
    graph, inputs = cache[name]
    program = Program(path.read_text())
    try:
        run, tensors = runner.prepare(program, inputs)
        run()
    except Exception as error:  # A build failure carries the compiler's log.
        fail(path, str(error)[:2000])
        continue
    report = check_values(graph, {tensor.name: tensors[tensor.name] for tensor in program.outputs()}, inputs)
    for output, (error, own) in report.items():
        if not error <= max(4 * own, 5e-5):
            fail(path, f"{output} is off by {error:.1e}, PyTorch by {own:.1e}")
print(f"{failures} failures")
sys.exit(1 if failures else 0)
