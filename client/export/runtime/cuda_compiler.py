# SPDX-License-Identifier: Apache-2.0
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
