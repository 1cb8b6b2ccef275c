# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs the programs that a walk left behind.

    python check_programs.py GRAPHS PROGRAMS

PROGRAMS holds `GRAPH.WALK-STEP.cuda` and `GRAPH.WALK-STEP.opencl` texts. Every CUDA
text must compile for sm_90a without spills, the first and the last of each walk also
for sm_80 and sm_100a; every OpenCL text must build on PoCL and give PyTorch's results,
within four times single precision's own error or 5e-5 of the mean magnitude.
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




def architectures(path, last):
    return ("sm_80", "sm_90a", "sm_100a") if step_of(path) in (0, last) else ("sm_90a",)


def walk_of(path):
    return path.stem.rpartition("-")[0]


def step_of(path):
    return int(path.stem.rpartition("-")[2])


nvrtc = Nvrtc()
texts = sorted(programs.glob("*.cuda"))
last_steps = {}
for path in texts:
    last_steps[walk_of(path)] = max(step_of(path), last_steps.get(walk_of(path), 0))
for path in texts:
    for architecture in architectures(path, last_steps[walk_of(path)]):
        try:
            spilled = spills(nvrtc.compile(Program(path.read_text()), architecture))
            if spilled:
                fail(path, f"spills {spilled} bytes on {architecture}")
        except RuntimeError as error:
            fail(path, f"{architecture}: {str(error)[:2000]}")

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
