# SPDX-License-Identifier: Apache-2.0
"""Programs of the built-in engine for a problem file, without the services."""

import os
import re
import subprocess

# Not for many variants of one kernel: what they do is another matter.
_SKIPPED = ('library', 'capture', 'tune', 'stop')


class EngineError(Exception):
    """The problem could not be traced, or the engine refused."""


class Engine:
    """`mtmc-engine` and the tracer of one installation."""

    def __init__(self, bin_folder, python, dialect):
        self._bin = bin_folder
        self._python = python
        self._dialect = dialect

    def trace(self, problem, folder):
        """Writes the graph of `problem` to the folder; returns its path."""
        package = self._bin.resolve().parent / 'share/mtmc/python'
        done = subprocess.run(
            [self._python, '-m', 'mtmc_reference.graph_of', '--out', str(folder), str(problem)],
            capture_output=True, text=True, timeout=300, check=False,
            env={**os.environ, 'PYTHONPATH': str(package)})
        if done.returncode != 0:
            raise EngineError(f'{problem} could not be traced: {done.stderr[-1000:]}')
        return folder / f'{problem.stem}.json'

    def actions(self, graph_path, applied):
        """Texts of the legal actions after `applied`."""
        lines = self._run('actions', graph_path, applied).splitlines()
        return [line for line in lines if re.match(r'[a-z_]+ ', line) and not line.startswith('group ')]

    def program(self, graph_path, applied=()):
        """Text of the program after `applied`."""
        return self._run('print', graph_path, applied)

    def variations(self, graph_path, count):
        """At most `count` different programs: the first one, then those that one and
        two actions make of it."""
        texts = {}
        frontier = [()]
        while frontier and len(texts) < count:
            applied = frontier.pop(0)
            texts.setdefault(self.program(graph_path, applied), applied)
            if len(applied) < 2:
                frontier += [(*applied, action) for action in self.actions(graph_path, applied)
                             if not action.startswith(_SKIPPED)]
        return list(texts)[:count]

    def _run(self, command, graph_path, applied):
        arguments = [str(self._bin / 'mtmc-engine'), command, str(graph_path), '--dialect', self._dialect]
        for action in applied:
            arguments += ['--apply', action]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise EngineError(done.stderr.strip()[-500:])
        return done.stdout


def widen_sweep(text):
    """A GEMM of the engine that tunes its block alone, with its micro-tile and step
    tuned too: 64 variants, all of them legal."""
    tile, rest = 'MATMUL_', text
    for axis in 'MN':
        rest = rest.replace(f'T{axis} = 8', f'T{axis} = {tile}T{axis}')
        rest = re.sub(rf'({tile}B{axis}) ?/ ?8', rf'\1 / {tile}T{axis}', rest)
    rest = re.sub(r'//@ tune MATMUL_BK = .*', '//@ tune MATMUL_BK = 16 8 32 4', rest)
    rest = rest.replace('//@ launch', f'//@ tune {tile}TM = 8 4\n//@ tune {tile}TN = 8 4\n//@ launch', 1)
    if rest.count(f'{tile}TM') < 4 or '/ 8' in rest.split('{', 1)[0]:
        raise EngineError('the engine prints its GEMM in another way now')
    return rest


def to_load_inline(text):
    """KernelBench's usual form of a candidate with the kernels of `text`: a CUDA
    extension that PyTorch compiles. For plans of one launch with one input and one
    output of the same shape."""
    launch = re.search(r'//@ launch (\w+) grid=\((.*)\) block=\((.*)\) args=\((\w+), (\w+)\)', text)
    if not launch or text.count('//@ launch') != 1 or '//@ tune' in text:
        raise EngineError('the plan is not one launch over one input')
    kernel, grid, block = launch.group(1, 2, 3)
    ceil_div = 'static long ceil_div(long a, long b) { return (a + b - 1) / b; }'
    host = (f'{ceil_div}\ntorch::Tensor run(torch::Tensor x) {{\n  auto y = torch::empty_like(x);\n'
            f'  {kernel}<<<{grid}, {block}>>>(x.data_ptr<float>(), y.data_ptr<float>());\n  return y;\n}}\n')
    source = '\n'.join(line for line in text.splitlines() if not line.startswith('//@'))
    return f'''import torch
from torch.utils.cpp_extension import load_inline

module = load_inline(name="candidate", cpp_sources="torch::Tensor run(torch::Tensor x);",
                     cuda_sources={source + host!r}, functions=["run"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return module.run(x)
'''
