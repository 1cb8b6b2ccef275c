# SPDX-License-Identifier: Apache-2.0
"""Runs programs on an OpenCL device through pyopencl, without the worker."""

import laid_out
import numpy
import program_text
from laid_out import program_runner

_SCALARS = {
    "int": numpy.int32,
    "uint": numpy.uint32,
    "unsigned": numpy.uint32,
    "long": numpy.int64,
    "ulong": numpy.uint64,
    "size_t": numpy.uint64,
    "float": numpy.float32,
    "double": numpy.float64,
}


class Device:
    """The first OpenCL device."""

    def __init__(self):
        self._runner = program_runner.OpenClRunner()

    def load(self, text):
        """The program `text`, built with the first value of each tune parameter."""
        return LoadedProgram(self._runner, text)


class LoadedProgram:
    """A built program: `run` as often as wanted."""

    def __init__(self, runner, text):
        self._runner, self._cl = runner, runner.cl
        self._plan = program_runner.Program(text)
        self._source = program_text.ProgramText(text)
        self._bindings = self._plan.bindings()
        options = [f"-D{name}={value}" for name, value in self._bindings.items()]
        self._built = self._cl.Program(runner.context, text).build(options)

    def run(self, inputs, filling):
        """Outputs by name; see laid_out.py."""
        flags = self._cl.mem_flags.READ_WRITE | self._cl.mem_flags.USE_HOST_PTR
        arrays, buffers = {}, {}
        for name, window, shaped in laid_out.tensors(self._plan, inputs, filling):
            arrays[name] = shaped
            buffers[name] = self._cl.Buffer(self._runner.context, flags, hostbuf=window)
        for word, rest in self._plan.steps:
            self._step(word, rest, arrays, buffers)
        self._runner.queue.finish()
        return {t.name: arrays[t.name].clone() for t in self._plan.outputs()}

    def _step(self, word, rest, arrays, buffers):
        if word == "call":
            step = self._runner._step(word, rest, self._built, self._bindings, arrays, buffers)
            step()
            return
        name, grid, block, arguments = laid_out.launch(rest)
        entry = self._cl.Kernel(self._built, name)
        kernel = next(k for k in self._source.kernels if k.name == name)
        for position, argument in enumerate(arguments):
            entry.set_arg(position, self._argument(kernel, position, argument, buffers))
        grid, block = ([program_runner.evaluate(t, self._bindings) for t in d] for d in (grid, block))
        block += [1] * (len(grid) - len(block))
        grid += [1] * (len(block) - len(grid))
        sizes = [count * width for count, width in zip(grid, block)]
        queue = self._runner.queue
        self._cl.enqueue_nd_range_kernel(queue, entry, sizes, block)

    def _argument(self, kernel, position, argument, buffers):
        if argument in buffers:
            return buffers[argument]
        kind = kernel.parameters[position][0]
        is_real = kind in ("float", "double")
        value = float(argument) if is_real else program_runner.evaluate(argument, self._bindings)
        return _SCALARS[kind](value)
