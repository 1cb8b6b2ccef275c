# SPDX-License-Identifier: Apache-2.0
"""CUDA kernels from source text: compiled by NVRTC, launched on PyTorch's stream.

Imported only where kernels are compiled; `cuda.bindings` comes with PyTorch. A
failing call raises RuntimeError.
"""

import ctypes

import torch
from cuda.bindings import driver, nvrtc

_STANDARD = "--std=c++17"


def compile_kernels(source, expressions, architecture):
    """(machine code, name in it by expression) of kernels such as `Scan<float, 4>`.

    `architecture` is one such as `sm_90`. Needs no GPU.
    """
    program = _called(nvrtc.nvrtcCreateProgram(source.encode(), b"kernels.cu", 0, [], []))
    try:
        for expression in expressions:
            _called(nvrtc.nvrtcAddNameExpression(program, expression.encode()))
        options = [f"--gpu-architecture={architecture}".encode(), _STANDARD.encode()]
        code, *_ = nvrtc.nvrtcCompileProgram(program, len(options), options)
        if code != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise RuntimeError(f"NVRTC: {code.name}: {_log(program)}")
        names = {
            expression: _called(nvrtc.nvrtcGetLoweredName(program, expression.encode()))
            for expression in expressions
        }
        image = b" " * _called(nvrtc.nvrtcGetCUBINSize(program))
        _called(nvrtc.nvrtcGetCUBIN(program, image))
        return image, names
    finally:
        nvrtc.nvrtcDestroyProgram(program)


class Kernel:
    """One compiled kernel on one device. Lives as long as the process."""

    def __init__(self, source, expression, device):
        major, minor = torch.cuda.get_device_capability(device)
        image, names = compile_kernels(source, [expression], f"sm_{major}{minor}")
        self._device = device
        # The driver reads it while it loads only.
        buffer = ctypes.create_string_buffer(image, len(image))
        with torch.cuda.device(device):
            # Makes the context of PyTorch current.
            torch.cuda.current_stream(device).synchronize()
            self._module = _called(driver.cuModuleLoadData(ctypes.addressof(buffer)))
        self._function = _called(driver.cuModuleGetFunction(self._module, names[expression]))

    def launch(self, blocks, threads, arguments):
        """Enqueues the kernel; an argument is a tensor or an integer of 64 bits."""
        values = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in arguments]
        types = [
            ctypes.c_void_p if isinstance(a, torch.Tensor) else ctypes.c_longlong
            for a in arguments
        ]
        with torch.cuda.device(self._device):
            stream = torch.cuda.current_stream(self._device).cuda_stream
            _called(
                driver.cuLaunchKernel(
                    self._function,
                    *(blocks, 1, 1),
                    *(threads, 1, 1),
                    *(0, stream),
                    (tuple(values), tuple(types)),
                    0,
                )
            )


def _log(program):
    # It is written to, so it must not be the one b" " of the interpreter.
    log = b" " * (_called(nvrtc.nvrtcGetProgramLogSize(program)) + 1)
    _called(nvrtc.nvrtcGetProgramLog(program, log))
    return log.decode(errors="replace").strip("\0 \n")


def _called(answer):
    code, *values = answer
    if code.value != 0:
        raise RuntimeError(f"{type(code).__name__}: {code.name}")
    return values[0] if values else None
