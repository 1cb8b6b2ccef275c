# SPDX-License-Identifier: Apache-2.0
"""The compiler of exported files compiles their programs on a host without a GPU."""

import base64
import importlib.util
import json
import os
import pathlib
import re
import types
import zlib

import pytest

_RUNTIME = pathlib.Path(__file__).parent / "cuda_compiler.py"
_CLOSURE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.MULTILINE)

pytestmark = pytest.mark.skipif(
    not importlib.util.find_spec("cuda"), reason="cuda.bindings is not installed"
)


def runtime(headers):
    """The module of a file exported with `headers`; it knows PyTorch by its place alone."""
    torch = types.SimpleNamespace(__file__=importlib.util.find_spec("torch").origin)
    packed = base64.b64encode(zlib.compress(json.dumps(headers).encode())).decode()
    module = types.ModuleType("exported")
    module.__dict__.update(_MTMC_HEADERS=packed if headers else "", _mtmc_torch=torch)
    exec(compile(_RUNTIME.read_text(), str(_RUNTIME), "exec"), module.__dict__)
    return module


def needed(source):
    """What the exporter finds (client/export/header_pack.cc)."""
    share = pathlib.Path(os.environ["MTMC_SHARE"]) / "cuda"
    found, waiting = {}, [source]
    if "cub/" in source:
        waiting += [
            f"#include <thrust/system/{system}/detail/execution_policy.h>"
            for system in ("cpp", "cuda")
        ]
    while waiting:
        for name in _CLOSURE.findall(waiting.pop()):
            for path in (share / "include" / name, share / "cccl" / name):
                if name not in found and path.is_file():
                    found[name] = path.read_text(errors="replace")
                    waiting.append(found[name])
    return found


def kernel(body, head=""):
    return f'{head}\nextern "C" __global__ void f(float* y) {{ {body} }}\n'


@pytest.mark.parametrize("name", ["float.h", "cstdint", "limits", "cmath", "cuda_fp16.h", "mma.h"])
def test_a_program_finds_what_it_includes(name):
    source = kernel("y[0] = 1;", f"#include <{name}>")
    assert runtime(needed(source))._mtmc_compile(source, {}, 9, 0).startswith(b"\x7fELF")


def test_block_primitives_come_out_of_the_file_alone():
    source = kernel(
        "__shared__ cub::BlockReduce<float, 64>::TempStorage s;"
        "y[0] = cub::BlockReduce<float, 64>(s).Sum(y[1]);",
        "#include <cub/block/block_reduce.cuh>",
    )
    exported = runtime(needed(source))
    toolkit = [f for f in exported._mtmc_cuda_include_folders() if not f.endswith("cccl")]
    exported._mtmc_cuda_include_folders = lambda: toolkit
    assert exported._mtmc_compile(source, {}, 9, 0).startswith(b"\x7fELF")


def test_a_program_gets_the_prelude_that_it_was_exported_with():
    source = kernel("assert(y[1] > 0); y[0] = INFINITY + N;")
    headers = needed('#include "mtmc_prelude.h"')
    assert runtime(headers)._mtmc_compile(source, {"N": 3}, 9, 0).startswith(b"\x7fELF")


def test_a_program_that_does_not_compile_says_why():
    with pytest.raises(RuntimeError, match="undeclared"):
        runtime({})._mtmc_compile(kernel("y[0] = undeclared;"), {}, 9, 0)
