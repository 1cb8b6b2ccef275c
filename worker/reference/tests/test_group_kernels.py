# SPDX-License-Identifier: Apache-2.0
"""The kernels of `group_kernels.cu` find what PyTorch's operators find."""

import ctypes
import itertools
import math
import shutil
import subprocess
import time

import pytest
import torch
from host_kernels import SHIM, TO_FLOAT

from mtmc_reference import group_kernels, groups, scan_kernels
from mtmc_reference.compare import float_spreads

_BLOCKS = 3
_PAIRS = list(itertools.product(scan_kernels.FLOATS, scan_kernels.FLOATS))
_SHAPES = [(65,), (5000,), (100, 3), (70, 70), (70, 9, 7), (3, 8, 12, 12), (2, 3, 5000)]
_KERNELS = {"ScanRows": 6, "ScanColumns": 4}


def _names():
    types = scan_kernels.FLOATS
    for (y, r), kernel in itertools.product(_PAIRS, _KERNELS):
        yield kernel, types[y], types[r]


def test_every_kernel_compiles_for_a_gpu_that_is_not_there():
    compile_kernels = pytest.importorskip("mtmc_reference.cuda_kernel").compile_kernels
    wanted = [f"{kernel}<{y}, {r}>" for kernel, y, r in _names()]

    image, names = compile_kernels(group_kernels.source(), wanted, "sm_90")

    assert image and set(names) == set(wanted)


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """The kernels on the host, by name in C++."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    text = "#define MTMC_THREADS 4\n#define MTMC_GROUP_THREADS 4\n#define MTMC_WARP 4\n"
    text += f'#include "{SHIM}"\n{group_kernels.source()}{TO_FLOAT}'
    for number, (kernel, y, r) in enumerate(_names()):
        letters = "abcdef"[: _KERNELS[kernel] - (kernel == "ScanRows")]
        numbers = "".join(f"int64 {letter}, " for letter in letters)
        ends = "double* p, double* q" if kernel == "ScanRows" else "double* p"
        passed = ", ".join([*letters, *("pq" if kernel == "ScanRows" else "p")])
        text += (
            f'extern "C" void launch_{number}(const {y}* y, const {r}* r, {numbers}{ends}) '
            f"{{ Launch({_BLOCKS}, {kernel}<{y}, {r}>, y, r, {passed}); }}\n"
        )
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "kernels.cc").write_text(text)
    library = folder / "kernels.so"
    command = [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", "-pthread"]
    subprocess.run([*command, "-o", library, folder / "kernels.cc"], check=True)
    loaded = ctypes.CDLL(str(library))
    return {
        f"{kernel}<{y}, {r}>": loaded[f"launch_{number}"]
        for number, (kernel, y, r) in enumerate(_names())
    }


@pytest.fixture
def on_host(functions, monkeypatch):
    """Lets `groups` use the kernels, which run on the host."""

    def launch(name, blocks, device, arguments):
        functions[name](
            *(
                ctypes.c_void_p(a.data_ptr())
                if isinstance(a, torch.Tensor)
                else ctypes.c_longlong(a)
                for a in arguments
            )
        )

    monkeypatch.setattr(scan_kernels, "takes_floats", lambda y, r: True)
    monkeypatch.setattr(group_kernels, "launch", launch)
    monkeypatch.setattr(scan_kernels, "blocks", lambda wanted, device: _BLOCKS)
    monkeypatch.setattr(group_kernels, "_STRIP", 100)
    monkeypatch.setattr(group_kernels, "_COLUMN_STRIP", 30)


def _measured(y, r):
    return groups.measured([(y, r)], float_spreads([r.cpu()]))[0]


def _pair(shape, y_type, r_type):
    generator = torch.Generator().manual_seed(len(shape))
    r = torch.randn(shape, generator=generator)
    r *= torch.pow(10.0, torch.randint(-9, 1, shape, generator=generator))
    r.view(-1)[::7] = 0
    y = r * (1 + 1e-2 * torch.randn(shape, generator=generator))
    return y.to(y_type), r.to(r_type)


def _agree(found, expected):
    assert torch.allclose(found.error, expected.error, rtol=1e-4, atol=0)
    assert torch.allclose(found.size, expected.size, rtol=1e-4, atol=0)
    assert found.scale == pytest.approx(expected.scale, rel=1e-4)


@pytest.mark.parametrize("y_type, r_type", _PAIRS)
def test_groups_are_those_of_the_operators(on_host, monkeypatch, y_type, r_type):
    for shape in _SHAPES:
        y, r = _pair(shape, y_type, r_type)
        found = _measured(y, r)

        assert scan_kernels._is_possible
        with monkeypatch.context() as without:
            without.setattr(scan_kernels, "takes_floats", lambda y, r: False)
            _agree(found, _measured(y, r))


@pytest.mark.parametrize("scale", [1e-44, 1e-30, 1.0, 1e30, 1e38])
def test_what_is_not_finite_is_skipped_at_any_scale(on_host, monkeypatch, scale):
    y, r = (t * scale for t in _pair((70, 70), torch.float32, torch.float32))
    r[3, 5], r[4, 6], y[4, 7] = math.nan, -math.inf, math.nan
    found = _measured(y, r)
    assert scan_kernels._is_possible
    monkeypatch.setattr(scan_kernels, "takes_floats", lambda y, r: False)

    _agree(found, _measured(y, r))
    assert found.error[4] == math.inf and found.error[3].isfinite()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("y_type, r_type", _PAIRS)
def test_a_gpu_agrees_with_the_operators(y_type, r_type):
    for shape in [*_SHAPES, (3000, 1001), (64, 32, 60, 60), (3_000_001,), (2, 500, 1000, 3)]:
        y, r = _pair(shape, y_type, r_type)
        found = _measured(y.cuda(), r.cuda())

        assert scan_kernels._is_possible
        _agree(found, _measured(y, r))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize(
    "shape", [(16,), (64, 64), (4096, 4096), (4096, 131072), (64, 64, 256, 512), (1 << 29,)]
)
def test_a_gpu_scans_groups_at_the_speed_of_its_memory(shape):
    r = torch.randn(shape, device="cuda")
    y = r * 1.0001
    spread = float_spreads([r])
    for _ in range(3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        groups.measured([(y, r)], spread)
        seconds = time.perf_counter() - start
    print(f"{shape}: {seconds * 1e3:.3f} ms, {8e-9 * r.numel() / seconds:.0f} GB/s")
