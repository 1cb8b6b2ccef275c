# SPDX-License-Identifier: Apache-2.0
"""Programs for the judge of CUDA mutants compile as the worker compiles them; no GPU is needed."""

import pathlib

import cuda_run
import program_text
import pytest
import torch
from laid_out import program_runner

pytest.importorskip("cuda.bindings.nvrtc")
_HONEST = pathlib.Path(__file__).parents[1] / "honest/programs"
_H100 = (9, 0)


@pytest.mark.parametrize("path", sorted(_HONEST.glob("*.cu")), ids=lambda path: path.stem)
def test_honest_programs_compile(path):
    text = path.read_text()
    names = [kernel.name for kernel in program_text.ProgramText(text).kernels]
    bindings = program_runner.Program(text).bindings()

    image, lowered = cuda_run.compiled(text, names, bindings, _H100)

    assert image.startswith(b"\x7fELF") and set(lowered) == set(names)


@pytest.mark.parametrize("header", ["cuda/std/array", "cuda/atomic", "type_traits", "cub/block/block_reduce.cuh"])
def test_headers_of_libcu_are_found(header):
    text = f'#include <{header}>\nextern "C" __global__ void f(float* y) {{ y[0] = 1; }}\n'
    assert cuda_run.compiled(text, ["f"], {}, _H100)[1] == {"f": b"f"}


def test_what_does_not_compile_is_not_built():
    with pytest.raises(cuda_run.NotBuilt, match="nothing"):
        cuda_run.compiled('extern "C" __global__ void f() { nothing(); }', ["f"], {}, _H100)


def test_library_calls_write_their_results_in_place():
    arrays = {"x": torch.randn(3, 4), "w": torch.randn(4, 5), "y": torch.empty(3, 5)}

    cuda_run._call_library("aten::mm(x, w) -> y precision=strict", arrays)

    assert torch.equal(arrays["y"], arrays["x"] @ arrays["w"])
