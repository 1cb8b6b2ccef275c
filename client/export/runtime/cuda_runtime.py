# SPDX-License-Identifier: Apache-2.0
class _MtmcProgram:
    """Compiles the device source once for each device and launches its kernels."""

    def __init__(self, source, macros):
        self._source = source
        self._macros = macros
        self._modules = {}
        self._kernels = {}

    def launch(self, kernel, grid, block, shared_bytes, arguments, device):
        """Launches on PyTorch's current stream. `arguments` are (ctypes type or None, value)."""
        from cuda.bindings import driver

        function = self._kernel(kernel, shared_bytes, device)
        values = tuple(v.data_ptr() if t is None else v for t, v in arguments)
        types = tuple(_mtmc_ctypes.c_void_p if t is None else t for t, v in arguments)
        stream = _mtmc_torch.cuda.current_stream(device).cuda_stream
        (error,) = driver.cuLaunchKernel(function, *grid, *block, shared_bytes, stream, (values, types), 0)
        if error:
            raise RuntimeError(f"launch of {kernel} failed: {error}")

    def _kernel(self, name, shared_bytes, device):
        from cuda.bindings import driver

        key = (name, device.index)
        if key not in self._kernels:
            error, function = driver.cuModuleGetFunction(self._module(device), name.encode())
            if error:
                raise RuntimeError(f"the program has no kernel {name}: {error}")
            limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            if shared_bytes > 48 * 1024:
                driver.cuFuncSetAttribute(function, limit, shared_bytes)
            self._kernels[key] = function
        return self._kernels[key]

    def _module(self, device):
        from cuda.bindings import driver

        if device.index not in self._modules:
            major, minor = _mtmc_torch.cuda.get_device_capability(device)
            binary = _mtmc_compile(self._source, self._macros, major, minor)
            _mtmc_torch.cuda.current_stream(device)
            error, module = driver.cuModuleLoadData(binary)
            if error:
                raise RuntimeError(f"the program cannot be loaded: {error}")
            self._modules[device.index] = module
        return self._modules[device.index]


def _mtmc_compile(source, macros, major, minor):
    """A cubin for the compute capability `major`.`minor`."""
    suffix = "a" if major >= 9 else ""
    options = [f"--gpu-architecture=sm_{major}{minor}{suffix}", "--std=c++20", "-default-device",
               "--extra-device-vectorization", "--define-macro=NDEBUG"]
    options += [f"--define-macro={name}={value}" for name, value in macros.items()]
    headers = _mtmc_headers()
    has_prelude = "mtmc_prelude.h" in headers
    if headers or "#include" in source:
        options += [f"--include-path={folder}" for folder in _mtmc_cuda_include_folders()]
        options.append("--diag-suppress=47")
    binary, log = _mtmc_nvrtc(source, options, headers)
    if binary is None and has_prelude:
        # What nvcc makes known unasked, such as INFINITY.
        binary, _ = _mtmc_nvrtc(source, options + ["--pre-include=mtmc_prelude.h"], headers)
    if binary is None:
        raise RuntimeError(f"the program does not compile here: {log}")
    return binary


def _mtmc_nvrtc(source, options, headers):
    """(cubin or None, log). `headers` are texts by the name they are included under."""
    from cuda.bindings import nvrtc

    options = [option.encode() for option in options]
    names = [name.encode() for name in headers]
    texts = [text.encode() for text in headers.values()]
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"program.cu", len(names), texts, names)
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    binary = None
    if not error:
        _, size = nvrtc.nvrtcGetCUBINSize(program)
        binary = b" " * size
        nvrtc.nvrtcGetCUBIN(program, binary)
    nvrtc.nvrtcDestroyProgram(program)
    return binary, log.rstrip(b"\0").decode()


def _mtmc_headers():
    import base64
    import json
    import zlib

    return json.loads(zlib.decompress(base64.b64decode(_MTMC_HEADERS))) if _MTMC_HEADERS else {}


def _mtmc_cuda_include_folders():
    """Folders of the toolkit's headers in the packages that PyTorch brings."""
    import pathlib

    root = pathlib.Path(_mtmc_torch.__file__).parent.parent
    wheel = root / "nvidia" / "cu13" / "include"
    folders = [wheel, wheel / "cccl", root / "triton" / "backends" / "nvidia" / "include"]
    return [str(folder) for folder in folders if folder.exists()]
