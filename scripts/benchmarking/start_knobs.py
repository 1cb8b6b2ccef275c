#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/benchmarking/start_knobs.py: how far the engine's first kernels are from its best.

Draws problems of one or two operators in shapes at random, has the engine print the kernel
that a job starts with and those of all sets of knobs within a few actions of it, and times
each on the device. `lost` is the start's time over the best one's: 1 where the search has
nothing left to find. Kernels alone, without judging them.

    scripts/benchmarking/start_knobs.py --bin build/release/bin --problems 40 --seed 7 --json start-knobs.json
"""

import argparse
import concurrent.futures
import ctypes
import dataclasses
import glob
import math
import multiprocessing
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent))

from scripts.benchmarking import results  # noqa: E402
from scripts.benchmarking.engine_programs import Engine, EngineError  # noqa: E402

MOST_PROGRAMS = 160
MOST_ACTIONS = 4
SAMPLES = 7
# Slower than this is timed twice only.
SLOW_US = 3000.0
# Evicts what the cache holds of a kernel's operands.
FLUSH_BYTES = 256 << 20
# In the order in which they are taken, so that no set is reached twice.
KINDS = (('reorder', r'reorder'), ('split', r'split'), ('block', r'tile .* threads per block'),
         ('depth', r'tile .* per row'), ('kept', r'tile .* in registers|tile .* read again'),
         ('tile', r'tile'), ('vector', r'vectorize'))


@dataclasses.dataclass(frozen=True)
class Problem:
    """What stands in a `forward`, and what it works on."""

    kind: str
    expression: str
    shape: tuple
    module: str = 'None'

    def source(self):
        return ('import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n'
                'class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n'
                f'        self.n = {self.module}\n\n    def forward(self, x):\n        return {self.expression}\n\n\n'
                f'def get_inputs():\n    return [torch.randn({", ".join(map(str, self.shape))})]\n\n\n'
                'def get_init_inputs():\n    return []\n')


def drawn_size(rng, low, high):
    """Between two powers of 2, mostly a multiple of 4 or 8, as people choose them."""
    size = int(2 ** rng.uniform(low, high))
    step = rng.choice((1, 4, 8, 8))
    return max(1, size // step * step)


def draw(rng):
    elements = rng.uniform(18, 24.5)
    kind = rng.choice(('row', 'row', 'row', 'few rows', 'short row', 'middle', 'middle', 'batch norm', 'window', 'pointwise'))
    of_rows = ('torch.softmax(x, {d})', 'x.mean({d})', 'x.amax({d})', 'x / x.norm(dim={d}, keepdim=True)',
               'torch.logsumexp(x, {d})', 'x - x.mean({d}, keepdim=True)', 'torch.log_softmax(F.gelu(x), {d})')
    if kind in ('row', 'few rows', 'short row'):
        columns = drawn_size(rng, *{'row': (6, 15), 'few rows': (13, 22), 'short row': (2, 7)}[kind])
        rows = max(1, int(2 ** (rng.uniform(0, 6) if kind == 'few rows' else elements) / (1 if kind == 'few rows' else columns)))
        rows = min(rows, int(2**26 / columns))
        if rng.random() < 0.25:
            return Problem(kind, 'self.n(x)', (rows, columns), f'nn.{rng.choice(("LayerNorm", "RMSNorm"))}({columns})')
        return Problem(kind, rng.choice(of_rows).format(d=-1), (rows, columns))
    if kind == 'middle':
        middle = drawn_size(rng, 3, 12)
        batch = int(2 ** rng.uniform(0, 6))
        columns = max(4, int(2**elements / (middle * batch)) // 4 * 4)
        return Problem(kind, rng.choice(of_rows).format(d=1), (batch, middle, columns))
    side = rng.choice((7, 14, 28, 32, 56, 64, 112))
    channels = rng.choice((3, 16, 32, 64, 96, 128, 256, 512))
    image = (max(1, int(2**elements / (channels * side * side))), channels, side, side)
    if kind == 'batch norm':
        return Problem(kind, rng.choice(('self.n(x)', 'F.relu(self.n(x))')), image, f'nn.BatchNorm2d({channels})')
    if kind == 'window':
        return Problem(kind, rng.choice(('F.max_pool2d(x, 3, 2, 1)', 'F.avg_pool2d(x, 2)', 'F.adaptive_avg_pool2d(x, 1)')), image)
    return Problem(kind, rng.choice(('F.gelu(x)', 'torch.tanh(x) * 2 + x', 'F.hardswish(x + 1)', 'x.transpose(2, 3) * 2')), image)


def kind_of(action):
    return next((i for i, (_, pattern) in enumerate(KINDS) if re.match(pattern, action)), None)


def programs_of(engine, graph):
    """Text of each program, the start first, and the actions that lead to it."""
    found = {engine.program(graph): ()}

    def go_on(applied, last):
        if len(applied) == MOST_ACTIONS:
            return
        for action in engine.actions(graph, applied):
            kind = kind_of(action)
            if kind is None or kind <= last or len(found) >= MOST_PROGRAMS:
                continue
            text = engine.program(graph, (*applied, action))
            if text not in found:
                found[text] = (*applied, action)
                go_on((*applied, action), kind)

    go_on((), -1)
    return found


class Nvrtc:
    """Compiles for one architecture."""

    def __init__(self, architecture):
        import torch

        near = pathlib.Path(torch.__file__).parent.parent / 'nvidia/*/lib/libnvrtc.so.1*'
        paths = glob.glob(str(near)) + glob.glob('/usr/local/cuda*/lib64/libnvrtc.so')
        if not paths:
            raise SystemExit('start_knobs: no libnvrtc beside PyTorch or in /usr/local/cuda; install the CUDA toolkit')
        self._library = ctypes.CDLL(paths[0])
        self._options = (ctypes.c_char_p * 2)(f'--gpu-architecture={architecture}'.encode(), b'-std=c++17')

    def cubin(self, text):
        """The binary, or None where the text does not compile."""
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        self._library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b'program.cu', 0, None, None)
        binary = None
        if self._library.nvrtcCompileProgram(program, len(self._options), self._options) == 0:
            self._library.nvrtcGetCUBINSize(program, ctypes.byref(size))
            buffer = ctypes.create_string_buffer(size.value)
            self._library.nvrtcGetCUBIN(program, buffer)
            binary = buffer.raw
        self._library.nvrtcDestroyProgram(ctypes.byref(program))
        return binary


def compiled(job):
    architecture, text = job
    if not hasattr(compiled, 'nvrtc'):
        compiled.nvrtc = Nvrtc(architecture)
    return compiled.nvrtc.cubin(text)


class Timer:
    """Runs programs of one problem on the present CUDA device."""

    TYPES = {'f32': 'float32', 'i64': 'int64', 'i32': 'int32', 'bool': 'bool'}

    def __init__(self):
        import torch

        self._torch = torch
        self._driver = ctypes.CDLL('libcuda.so.1')
        self._flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device='cuda')
        self._tensors = {}

    def _require(self, code):
        if code != 0:
            raise RuntimeError(f'CUDA driver error {code}')

    def _pointer(self, name, kind, shape):
        dims = [int(d) for d in shape.split(',') if d]
        tensor = self._tensors.get(name)
        if tensor is None or list(tensor.shape) != dims:
            dtype = getattr(self._torch, self.TYPES[kind])
            tensor = self._torch.zeros(dims, dtype=dtype, device='cuda')
            if dtype.is_floating_point:
                tensor.normal_()
            self._tensors[name] = tensor
        return ctypes.c_void_p(tensor.data_ptr())

    def microseconds(self, text, cubin):
        """Median of a run of all launches with a cold cache; None for other steps than launches."""
        if re.search(r'^//@ call ', text, re.M):
            return None
        module = ctypes.c_void_p()
        self._require(self._driver.cuModuleLoadData(ctypes.byref(module), cubin))
        pointers = {m[1]: self._pointer(*m.groups())
                    for m in re.finditer(r'^//@ (?:input|weight|output|buffer) (\S+) (\w+)\[(.*)\]', text, re.M)}
        launches = [self._launch(module, pointers, *m.groups()) for m in re.finditer(
            r'^//@ launch (\S+) grid=\((.*?)\) block=\((.*?)\) args=\((.*?)\)$', text, re.M)]
        samples = []
        for _ in range(SAMPLES + 1):
            self._flush.zero_()
            begin, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for launch in launches:
                self._require(self._driver.cuLaunchKernel(*launch))
            end.record()
            end.synchronize()
            samples.append(begin.elapsed_time(end) * 1e3)
            if len(samples) == 2 and samples[-1] > SLOW_US:
                break
        self._require(self._driver.cuModuleUnload(module))
        return results.median(samples[1:])

    def _launch(self, module, pointers, name, grid, block, arguments):
        function = ctypes.c_void_p()
        self._require(self._driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
        values = [ctypes.c_void_p(pointers[a.strip()].value) for a in arguments.split(',')]
        array = (ctypes.c_void_p * len(values))(*(ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values))
        array.values = values
        grid, block = ([*map(int, _numbers(text)), 1, 1][:3] for text in (grid, block))
        stream = ctypes.c_void_p(self._torch.cuda.current_stream().cuda_stream)
        return function, *grid, *block, 0, stream, array, None


def _numbers(text):
    """Extents of a launch, which are sums and products of numbers and `ceil_div`."""
    return eval(f'[{text}]', {'__builtins__': {}, 'ceil_div': lambda a, b: -(-a // b)})  # noqa: S307


def summary_of(rows):
    def of(chosen):
        lost = [row['lost'] for row in chosen]
        return {'problems': len(lost), 'geomean_lost': results.rounded(results.geometric_mean(lost)),
                'worst_lost': max(lost, default=None)}

    kinds = sorted({row['kind'] for row in rows})
    return {'all': of(rows), **{kind: of([r for r in rows if r['kind'] == kind]) for kind in kinds}}


def commit_of(bin_folder):
    """What was built: the bundle knows it, a checkout is asked."""
    stamp = bin_folder.resolve().parent / 'share/mtmc/commit'
    if stamp.exists():
        return stamp.read_text().strip()
    return subprocess.run(['git', 'rev-parse', '--short', 'HEAD'], capture_output=True, text=True, check=False).stdout.strip()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--bin', type=pathlib.Path, required=True, help='folder of mtmc-engine')
    parser.add_argument('--python', default=sys.executable, help='interpreter that has PyTorch')
    parser.add_argument('--problems', type=int, default=40)
    parser.add_argument('--seed', type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument('--json', type=pathlib.Path, required=True)
    return parser.parse_args()


def measure(file, timer, index, problem, programs, cubins):
    """Adds the row of a problem, unless its start cannot run alone."""
    texts = list(programs)
    times = [timer.microseconds(text, cubins[text]) if cubins[text] else None for text in texts]
    if not times or times[0] is None:
        return
    best = min(range(len(times)), key=lambda i: times[i] or math.inf)
    lost, way = times[0] / times[best], ', '.join(programs[texts[best]])
    file.put({'problem': f'{index}: {problem.expression}', 'kind': problem.kind,
              'shape': 'x'.join(map(str, problem.shape)), 'programs': len(texts), 'start_us': times[0],
              'best_us': times[best], 'lost': lost, 'best_is': way or 'the start'}, ('problem',))
    print(f'{problem.kind:10} {problem.expression:40} {problem.shape!s:24} {times[0]:9.1f} us, {lost:.2f} of the best: {way}',
          flush=True)


def main():
    arguments = parse_arguments()
    import torch

    rng = random.Random(arguments.seed)
    engine = Engine(arguments.bin, arguments.python, 'cuda')
    major, minor = torch.cuda.get_device_capability()
    head = {'command': f'scripts/benchmarking/start_knobs.py --problems {arguments.problems} --seed {arguments.seed}',
            'commit': commit_of(arguments.bin), 'device': torch.cuda.get_device_name(),
            'versions': {'torch': torch.__version__, 'cuda': torch.version.cuda},
            'about': 'Kernels alone, cold cache, median of 7, in microseconds. `lost`: the start over the best of '
                     '`programs` sets of knobs, 1 where nothing is left to find.'}
    file = results.ResultFile(arguments.json, head, summary_of, resumes=False)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)

        def printed(numbered):
            index, problem = numbered
            path = folder / f'p{index}.py'
            path.write_text(problem.source())
            try:
                return problem, programs_of(engine, engine.trace(path, folder))
            except EngineError as error:
                print(f'{problem.expression} {problem.shape}: {error}', file=sys.stderr)
                return problem, {}

        # Each waits for processes of its own.
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            problems = list(threads.map(printed, enumerate(draw(rng) for _ in range(arguments.problems))))
    jobs = [(f'sm_{major}{minor}', text) for _, programs in problems for text in programs]
    with multiprocessing.get_context('spawn').Pool() as pool:
        cubins = dict(zip((text for _, text in jobs), pool.map(compiled, jobs, chunksize=8)))
    for index, (problem, programs) in enumerate(problems):
        measure(file, Timer(), index, problem, programs, cubins)
    print(summary_of(file.rows)['all'])


if __name__ == '__main__':
    main()
