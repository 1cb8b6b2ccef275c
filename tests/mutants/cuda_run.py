# SPDX-License-Identifier: Apache-2.0
"""Runs programs on a GPU through NVRTC and the driver, without the worker.

A program that harms the context ends the process: its judge is followed by another.
"""

import os
import pathlib

import laid_out
import numpy
import program_text
import torch
from laid_out import program_runner

_ENDED = 70
_PRELUDE = "mtmc_prelude.h"
_SCALARS = {
    "int": numpy.int32,
    "unsigned": numpy.uint32,
    "long long": numpy.int64,
    "size_t": numpy.uint64,
    "float": numpy.float32,
    "double": numpy.float64,
}


class NotBuilt(Exception):
    """The program does not compile."""


class Device:
    """The first GPU."""

    def __init__(self):
        torch.zeros(1, device="cuda")

    def load(self, text):
        """The program `text`, built with the first value of each tune parameter."""
        return LoadedProgram(text)


class LoadedProgram:
    """A built program: `run` as often as wanted."""

    def __init__(self, text):
        from cuda.bindings import driver

        self._driver = driver
        self._plan = program_runner.Program(text)
        self._source = program_text.ProgramText(text)
        self._bindings = self._plan.bindings()
        # One name for each kernel, whatever the source says of its linkage.
        names = [kernel.name for kernel in self._source.kernels]
        image, lowered = compiled(text, names, self._bindings, torch.cuda.get_device_capability())
        self._module = self._call(driver.cuModuleLoadData(image))
        self._kernels = {
            name: self._call(driver.cuModuleGetFunction(self._module, symbol))
            for name, symbol in lowered.items()
        }

    def run(self, inputs, filling):
        """Outputs by name; see laid_out.py."""
        arrays, kept = {}, []
        for name, window, shaped in laid_out.tensors(self._plan, inputs, filling):
            # Its margins go with it.
            whole = torch.from_numpy(window.base if window.base is not None else window).cuda()
            kept.append(whole)
            inside = whole[laid_out.MARGIN : laid_out.MARGIN + window.size]
            arrays[name] = inside.view(shaped.dtype).reshape(shaped.shape)
        for word, rest in self._plan.steps:
            if word == "call":
                _call_library(rest, arrays)
            else:
                self._launch(rest, arrays)
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            os._exit(_ENDED)
        return {t.name: arrays[t.name].cpu() for t in self._plan.outputs()}

    def _launch(self, rest, arrays):
        name, grid, block, arguments = laid_out.launch(rest)
        kernel = next(k for k in self._source.kernels if k.name == name)
        grid, block = (self._three(extents) for extents in (grid, block))
        values = [self._argument(kernel, i, a, arrays) for i, a in enumerate(arguments)]
        pointers = numpy.array([value.ctypes.data for value in values], numpy.uint64)
        stream = torch.cuda.current_stream().cuda_stream
        self._call(
            self._driver.cuLaunchKernel(
                self._kernels[name], *grid, *block, self._shared(rest), stream, pointers.ctypes.data, 0
            )
        )

    def _argument(self, kernel, position, argument, arrays):
        if argument in arrays:
            return numpy.array([arrays[argument].data_ptr()], numpy.uint64)
        kind = kernel.parameters[position][0]
        is_real = kind in ("float", "double")
        value = float(argument) if is_real else program_runner.evaluate(argument, self._bindings)
        return numpy.array([value], _SCALARS[kind])

    def _three(self, extents):
        values = [program_runner.evaluate(text, self._bindings) for text in extents]
        return values + [1] * (3 - len(values))

    def _shared(self, rest):
        _, found, text = rest.partition("shared=")
        return program_runner.evaluate(text.split()[0], self._bindings) if found else 0

    def _call(self, answer):
        status, *values = answer
        if status != self._driver.CUresult.CUDA_SUCCESS:
            os._exit(_ENDED)
        return values[0] if values else None


def _call_library(rest, arrays):
    # As narrow as the plan says, and no narrower.
    is_tf32 = " precision=tf32" in rest
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = is_tf32
    program_runner.library_call(rest, arrays)()


def compiled(text, names, bindings, capability):
    """(image, symbol by kernel's name) of a source, from the headers that the worker has; raises
    NotBuilt. Needs no GPU."""
    major, minor = capability
    options = [f"--gpu-architecture=sm_{major}{minor}", "--std=c++20", "-default-device"]
    options += ["--define-macro=NDEBUG", "--diag-suppress=47", *_includes()]
    options += [f"-D{name}={value}" for name, value in bindings.items()]
    try:
        return _compiled(text, names, options)
    except NotBuilt as first:
        # Who includes nothing may still take names of the prelude.
        try:
            return _compiled(text, names, [*options, f"--pre-include={_PRELUDE}"])
        except NotBuilt:
            raise first from None


def _compiled(text, names, options):
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"program.cu", 0, [], [])
    try:
        for name in names:
            nvrtc.nvrtcAddNameExpression(program, name.encode())
        encoded = [option.encode() for option in options]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            _, size = nvrtc.nvrtcGetProgramLogSize(program)
            log = b" " * size
            nvrtc.nvrtcGetProgramLog(program, log)
            raise NotBuilt(log.decode(errors="replace"))
        _, size = nvrtc.nvrtcGetCUBINSize(program)
        image = b" " * size
        nvrtc.nvrtcGetCUBIN(program, image)
        lowered = {n: nvrtc.nvrtcGetLoweredName(program, n.encode())[1] for n in names}
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return image, lowered


def _includes():
    """Our own headers first, then the toolkit's and libcu++."""
    import nvidia.cu13

    folders = [pathlib.Path(__file__).parents[2] / "worker/cuda/include"]
    for root in nvidia.cu13.__path__:
        folders += [pathlib.Path(root) / "include/cccl", pathlib.Path(root) / "include"]
    return [f"--include-path={folder}" for folder in folders if folder.is_dir()]
