# SPDX-License-Identifier: Apache-2.0
"""Checks and times exported winners in plain PyTorch, with no mtmc process.

Runs as a child that answers one JSON line per JSON line:

    {"problem": PATH, "export": PATH, "precision": "tf32"}
        -> {"ok": true, "error": 1e-6, "allowed": 1e-4, "kernelbench_allclose": true,
            "ours_ms": 0.9, "eager_ms": 2.7, "timed_by": "..."}
    {..., "rivals": ["graph", "compile"]}
        -> {..., "rivals": {"rival_eager_ms": 2.7, "graph_ms": 2.6, "compile_ms": 2.6}}:
           the model in the arithmetic of the class, by itself, as one CUDA graph, compiled;
           `searched_ms` is the model where cuDNN may search for algorithms
           (torch.backends.cudnn.benchmark), which exported files have it do as well

The exported file and what PyTorch offers are timed in two processes, forked before there
is a CUDA context: the algorithm that cuDNN chose for a convolution first stays that of
the process, whoever asks for it later.

The protocol is KernelBench's: seed 42 before the inputs and again before each
model's constructor, so that `Model` and `ModelNew` have equal parameters; training
mode; no gradients. Inputs and parameters are drawn on the device, since drawing
1.6e9 numbers on the host takes longer than all the rest.

Errors are measured against an fp64 run of `Model`: the smallest t with
|y - r| <= t + t |r| for every element. Allowed is the tolerance of the precision
class or twice the error that eager itself has in that class, whichever is larger.
"""

import argparse
import contextlib
import copy
import ctypes
import dataclasses
import importlib.util
import json
import os
import signal
import statistics
import sys
import time
import traceback

import torch

SEED = 42
TOLERANCE = {'strict': 1e-4, 'kernelbench': 1e-4, 'tf32': 1e-3, 'half': 1e-2}
# KernelBench's own tolerance for fp32, against eager.
KERNELBENCH_TOLERANCE = 1e-4
WARM_UPS, TRIALS = 3, 100
# On a CPU a problem takes up to seconds; this many seconds of trials are enough.
HOST_SECONDS = 3.0
# Elements compared at a time: two fp64 temporaries of half a GiB.
CHUNK = 64 << 20
# Of Linux: the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1


def load_module(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def map_tensors(value, function):
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        items = [map_tensors(item, function) for item in value]
        return type(value)(*items) if hasattr(value, '_fields') else type(value)(items)
    if isinstance(value, dict):
        return {key: map_tensors(item, function) for key, item in value.items()}
    return value


def tensors_of(value):
    """Those in what a model returns, in their order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    elif isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for item in value for tensor in tensors_of(item)]


def to_double(value):
    return map_tensors(value, lambda t: t.double() if t.is_floating_point() else t)


def tolerance_needed(outputs, references):
    """The smallest t with |y - r| <= t + t |r|; infinite where only one is finite."""
    outputs, references = tensors_of(outputs), tensors_of(references)
    if [tuple(t.shape) for t in outputs] != [tuple(t.shape) for t in references]:
        return float('inf')
    worst = 0.0
    for output, reference in zip(outputs, references):
        output, reference = output.reshape(-1), reference.reshape(-1)
        for start in range(0, output.numel(), CHUNK):
            y = output[start:start + CHUNK].double()
            r = reference[start:start + CHUNK].double()
            equal = (y == r) | (y.isnan() & r.isnan())
            needed = ((y - r).abs() / (1 + r.abs())).masked_fill(equal, 0.0)
            worst = max(worst, needed.nan_to_num(nan=float('inf')).max().item())
    return worst


@contextlib.contextmanager
def tf32(is_allowed):
    """Matrix products in TF32 within the block."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = is_allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


class Problem:
    """A problem with its inputs, its eager model and, once asked for, references."""

    def __init__(self, path, device):
        self.path = path
        self._device = device
        module = load_module(path, 'problem')
        torch.manual_seed(SEED)
        with device:
            self.inputs = module.get_inputs()
        self.inputs = map_tensors(self.inputs, lambda t: t.to(device))
        torch.manual_seed(SEED)
        with device:
            self._init_inputs = module.get_init_inputs()
        self.model = self.build(module.Model)
        self._exact = None
        self.oracle = 'fp64'
        self._own_error = {}

    def build(self, model_class):
        torch.manual_seed(SEED)
        with self._device:
            return model_class(*copy.deepcopy(self._init_inputs)).to(self._device)

    def run(self, model, inputs=None):
        """Fresh inputs, so that a model that writes to them harms nobody."""
        torch.manual_seed(SEED)
        if inputs is None:
            inputs = map_tensors(self.inputs, torch.clone)
        with torch.no_grad():
            return model(*inputs)

    def exact(self):
        """Outputs of the fp64 run, or of one without TF32 where that does not fit into memory."""
        if self._exact is None:
            try:
                model = copy.deepcopy(self.model).double()
                self._exact = self.run(model, to_double(self.inputs))
            except torch.cuda.OutOfMemoryError:
                self.oracle = 'fp32'
            if self._exact is None:
                torch.cuda.empty_cache()
                with tf32(False), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
                    self._exact = self.run(copy.deepcopy(self.model))
        return self._exact

    def forget_exact(self):
        """Gives the memory of the references back."""
        self._exact = None
        if self._device.type == 'cuda':
            torch.cuda.empty_cache()

    def own_error(self, precision):
        """Error of eager itself in a precision class."""
        if precision not in self._own_error:
            with tf32(precision in ('tf32', 'half')):
                outputs = self.run(copy.deepcopy(self.model))
            self._own_error[precision] = tolerance_needed(outputs, self.exact())
        return self._own_error[precision]


class Harness:
    """Checks one problem; each method in a process of its own."""

    def __init__(self, device, timing):
        self._device = torch.device(device)
        # KernelBench's module with its timing functions, or None on a CPU.
        self._timing = timing

    def check(self, path, export, precision):
        """Whether the exported file is right, and its time."""
        problem = Problem(path, self._device)
        candidate = problem.build(load_module(export, 'export').ModelNew)
        outputs = problem.run(candidate)
        error = tolerance_needed(outputs, problem.exact())
        allowed = max(TOLERANCE[precision], 2 * problem.own_error(precision))
        eager = problem.run(copy.deepcopy(problem.model))
        close = tolerance_needed(outputs, eager) <= KERNELBENCH_TOLERANCE
        del outputs, eager
        problem.forget_exact()
        reply = {'ok': error <= allowed, 'error': error, 'allowed': allowed, 'kernelbench_allclose': close,
                 'oracle': problem.oracle}
        if reply['ok']:
            with torch.no_grad():
                reply['ours_ms'], reply['timed_by'] = self._time(candidate, problem.inputs)
        return reply

    def time_model(self, path, precision, rivals):
        """The user's model by the same clock, and its rivals."""
        problem = Problem(path, self._device)
        with torch.no_grad():
            reply = {'eager_ms': self._time(problem.model, problem.inputs)[0]}
            with tf32(precision in ('tf32', 'half')):
                reply['rivals'] = self._time_rivals(problem, rivals)
        return reply

    def time_searched(self, path):
        """The user's model where cuDNN tries its algorithms."""
        problem = Problem(path, self._device)
        torch.backends.cudnn.benchmark = True
        with torch.no_grad():
            return {'searched_ms': self._time(problem.model, problem.inputs)[0]}

    def _time_rivals(self, problem, names):
        """Milliseconds of what else PyTorch offers, as far as it runs there."""
        makers = {'graph': self._captured, 'compile': torch.compile}
        found = {'rival_eager_ms': self._time(problem.model, problem.inputs)[0]} if names else {}
        for name in names:
            if name == 'graph' and self._device.type != 'cuda':
                continue
            try:
                rival = makers[name](copy.deepcopy(problem.model))
                found[f'{name}_ms'], _ = self._time(rival, problem.inputs)
            except Exception as error:  # A model that cannot be captured has no such time.
                print(f'{problem.path}: no {name}: {error}', file=sys.stderr)
        return found

    def _captured(self, model):
        """The model as one CUDA graph over the inputs of its first call."""
        graph = torch.cuda.CUDAGraph()
        state = {}

        def run(*inputs):
            if not state:
                side = torch.cuda.Stream()
                with torch.cuda.stream(side):
                    model(*inputs)
                torch.cuda.synchronize()
                with torch.cuda.graph(graph):
                    state['outputs'] = model(*inputs)
            graph.replay()
            return state['outputs']

        return run

    def _time(self, model, inputs):
        """Median in milliseconds and how it was taken."""
        if self._timing is not None:
            times = self._timing.time_execution_with_cuda_event(
                model, inputs, num_warmup=WARM_UPS, num_trials=TRIALS, verbose=False, device=self._device)
            return statistics.median(times), 'KernelBench cuda_event'
        model(*inputs)
        times = []
        begin = time.perf_counter()
        while len(times) < TRIALS and (len(times) < 3 or time.perf_counter() - begin < HOST_SECONDS):
            start = time.perf_counter()
            model(*inputs)
            times.append((time.perf_counter() - start) * 1e3)
        return statistics.median(times), 'host clock'


def describe(device):
    versions = {'torch': torch.__version__.split('+')[0], 'python': sys.version.split()[0]}
    if device != 'cpu':
        versions['cuda'] = torch.version.cuda
    return {'versions': versions, 'device': torch.cuda.get_device_name(device) if device != 'cpu' else 'cpu'}


def in_child(function, *arguments):
    """What the function returns in a fork of this process, or the failure of it."""
    reader, writer = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        try:
            answer = function(*arguments)
        except BaseException as error:  # Any failure of user code is an answer, its exit as well.
            answer = {'ok': False, 'failure': f'{type(error).__name__}: {error}'[:500],
                      'traceback': traceback.format_exc()[-2000:]}
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, 'rb') as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if not answer:
        return {'ok': False, 'failure': f'the check died with {os.waitstatus_to_exitcode(status)}'}
    return json.loads(answer)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--device', required=True, help='cuda:0 or cpu')
    parser.add_argument('--timing', help="KernelBench's timing.py")
    arguments = parser.parse_args()
    # What problems and KernelBench print must not mix with the answers.
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    timing = None
    if arguments.device != 'cpu' and arguments.timing:
        timing = load_module(arguments.timing, 'kernelbench_timing')
    harness = Harness(arguments.device, timing)
    print(json.dumps(in_child(describe, arguments.device)), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        problem, precision = request['problem'], request['precision']
        reply = in_child(harness.check, problem, request['export'], precision)
        if reply.get('ok'):
            model = in_child(harness.time_model, problem, precision, request.get('rivals', ()))
            reply |= {'ok': False, **model} if 'failure' in model else model
            if 'graph' in request.get('rivals', ()) and arguments.device != 'cpu' and reply['ok']:
                searched = in_child(harness.time_searched, problem)
                if 'failure' not in searched:
                    reply['rivals'] |= searched
        print(json.dumps(reply), file=answers, flush=True)


if __name__ == '__main__':
    main()
