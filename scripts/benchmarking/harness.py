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

The exported file and what PyTorch offers are timed in processes of their own, forked before
there is a CUDA context: the algorithm that cuDNN chose for a convolution first stays that of
the process, whoever asks for it later. They take turns, after the fp64 run has ended, so that
no one has the device cooler or its clock higher than the others.

The protocol is KernelBench's: seed 42 before the inputs and again before each
model's constructor, so that `Model` and `ModelNew` have equal parameters; training
mode; no gradients. Inputs and parameters are drawn on the device, since drawing
1.6e9 numbers on the host takes longer than all the rest.

Errors are measured against an fp64 run of `Model`: the smallest t with
|y - r| <= t + t |r| for every element. Allowed is the tolerance of the precision
class or twice the error that eager itself has in that class, whichever is larger.
"""

import argparse
import collections
import contextlib
import copy
import dataclasses
import importlib.util
import json
import os
import statistics
import sys
import time

import torch

from children import in_child, in_turns

SEED = 42
TOLERANCE = {'strict': 1e-4, 'kernelbench': 1e-4, 'tf32': 1e-3, 'half': 1e-2}
# KernelBench's own tolerance for fp32, against eager.
KERNELBENCH_TOLERANCE = 1e-4
WARM_UPS, TRIALS = 3, 25
# Each is timed so often in turns: clocks drift by several per cent within a second of work.
ROUNDS = 4
# On a CPU a problem takes up to seconds; this many seconds of trials are enough.
HOST_SECONDS = 0.75
# Elements compared at a time: two fp64 temporaries of half a GiB.
CHUNK = 64 << 20


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
        """Outputs of the fp64 run, or of one without TF32 where that does not fit into memory, or holds on to FP32:
        a function of the model may call parameters of its own that no copy has."""
        if self._exact is None:
            try:
                model = copy.deepcopy(self.model).double()
                self._exact = self.run(model, to_double(self.inputs))
            except RuntimeError:
                self.oracle = 'fp32'
            if self._exact is None:
                torch.cuda.empty_cache()
                with tf32(False), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
                    self._exact = self.run(copy.deepcopy(self.model))
        return self._exact

    def own_error(self, precision):
        """Error of eager itself in a precision class."""
        if precision not in self._own_error:
            with tf32(precision in ('tf32', 'half')):
                outputs = self.run(copy.deepcopy(self.model))
            self._own_error[precision] = tolerance_needed(outputs, self.exact())
        return self._own_error[precision]


class Harness:
    """Checks and times one problem, each run in a process of its own."""

    def __init__(self, device, timing):
        self._device = torch.device(device)
        # KernelBench's module with its timing functions, or None on a CPU.
        self._timing = timing

    def check(self, path, export, precision):
        """Whether the exported file is right."""
        problem = Problem(path, self._device)
        candidate = problem.build(load_module(export, 'export').ModelNew)
        outputs = problem.run(candidate)
        error = tolerance_needed(outputs, problem.exact())
        allowed = max(TOLERANCE[precision], 2 * problem.own_error(precision))
        eager = problem.run(copy.deepcopy(problem.model))
        close = tolerance_needed(outputs, eager) <= KERNELBENCH_TOLERANCE
        return {'ok': error <= allowed, 'error': error, 'allowed': allowed, 'kernelbench_allclose': close,
                'oracle': problem.oracle, 'timed_by': self._clock()}

    def time_all(self, path, export, precision, rivals):
        """Milliseconds of a file that is right, and of its rivals, in turns; or the failure."""
        timers = [(self._time_export, (path, export)), (self._time_model, (path, precision, rivals))]
        if 'graph' in rivals and self._device.type == 'cuda':
            timers.append((self._time_searched, (path,)))
        answers = in_turns(timers, ROUNDS)
        if any('failure' in answer for answer in answers):
            # Together they may need more memory than there is.
            answers = [in_turns([timer], ROUNDS)[0] for timer in timers]
        ours, model, *searched = answers
        if 'failure' in ours or 'failure' in model:
            return {'ok': False, **ours, **model}
        for each in searched:
            # A failure of it is no failure of the file.
            model['rivals'] |= {} if 'failure' in each else each
        return {**ours, **model}

    def _time_export(self, path, export):
        problem = Problem(path, self._device)
        candidate = problem.build(load_module(export, 'export').ModelNew)
        return (yield from self._time_one('ours_ms', candidate, problem.inputs))

    def _time_model(self, path, precision, names):
        """The user's model by the same clock, and what else PyTorch offers, as far as it runs there."""
        problem = Problem(path, self._device)
        samples = _Samples(self)
        rivals = {'rival_eager_ms': problem.model} if names else {}
        if 'graph' in names and self._device.type == 'cuda':
            rivals['graph_ms'] = self._captured(copy.deepcopy(problem.model))
        if 'compile' in names:
            rivals['compile_ms'] = torch.compile(copy.deepcopy(problem.model))
        for _ in range(ROUNDS):
            samples.take('eager_ms', problem.model, problem.inputs)
            with tf32(precision in ('tf32', 'half')):
                for name in [*rivals]:
                    try:
                        samples.take(name, rivals[name], problem.inputs)
                    except Exception as error:  # A model that cannot be captured has no such time.
                        print(f'{path}: no {name}: {error}', file=sys.stderr)
                        del rivals[name]
            yield
        found = samples.medians()
        return {'eager_ms': found['eager_ms'], 'rivals': {name: found[name] for name in rivals}}

    def _time_searched(self, path):
        """The user's model where cuDNN tries its algorithms."""
        problem = Problem(path, self._device)
        torch.backends.cudnn.benchmark = True
        return (yield from self._time_one('searched_ms', problem.model, problem.inputs))

    def _time_one(self, name, model, inputs):
        samples = _Samples(self)
        for _ in range(ROUNDS):
            samples.take(name, model, inputs)
            yield
        return samples.medians()

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

    def sample(self, model, inputs):
        """Milliseconds of some calls of a model."""
        if self._timing is not None:
            return self._timing.time_execution_with_cuda_event(
                model, inputs, num_warmup=WARM_UPS, num_trials=TRIALS, verbose=False, device=self._device)
        model(*inputs)
        times = []
        begin = time.perf_counter()
        while len(times) < TRIALS and (len(times) < 1 or time.perf_counter() - begin < HOST_SECONDS):
            start = time.perf_counter()
            model(*inputs)
            times.append((time.perf_counter() - start) * 1e3)
        return times

    def _clock(self):
        return 'host clock' if self._timing is None else 'KernelBench cuda_event'


class _Samples:
    """Times by name, gathered over several turns."""

    def __init__(self, harness):
        self._harness = harness
        self._times = collections.defaultdict(list)

    def take(self, name, model, inputs):
        with torch.no_grad():
            found = self._harness.sample(model, inputs)
        self._times[name] += found

    def medians(self):
        return {name: statistics.median(times) for name, times in self._times.items()}


def describe(device):
    versions = {'torch': torch.__version__.split('+')[0], 'python': sys.version.split()[0]}
    if device != 'cpu':
        versions['cuda'] = torch.version.cuda
    return {'versions': versions, 'device': torch.cuda.get_device_name(device) if device != 'cpu' else 'cpu'}


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
            reply |= harness.time_all(problem, request['export'], precision, request.get('rivals', ()))
        print(json.dumps(reply), file=answers, flush=True)


if __name__ == '__main__':
    main()
