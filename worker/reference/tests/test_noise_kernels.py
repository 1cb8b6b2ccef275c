# SPDX-License-Identifier: Apache-2.0
"""The kernels of `noise_kernels.cu` disturb results as PyTorch's operators do."""

import ctypes
import math
import shutil
import subprocess

import pytest
import torch
from host_kernels import SHIM

from mtmc_reference import noise_kernels, rounding, scan_kernels, sum_rounding

_BLOCKS = 3
_UNIT = 2.0**-24
# Operands behind the result, and numbers behind those, of each kernel.
_KERNELS = {
    "DisturbElements": (0, 5),
    "DisturbScaled": (1, 5),
    "DisturbSums": (2, 10),
    "DisturbStatistics": (4, 13),
}


def _names():
    return [(f"{kernel}<{t}>", kernel, t) for kernel in _KERNELS for t in ("double", "float")]


def test_every_kernel_compiles_for_a_gpu_that_is_not_there():
    compile_kernels = pytest.importorskip("mtmc_reference.cuda_kernel").compile_kernels
    wanted = [name for name, _, _ in _names()]

    image, names = compile_kernels(noise_kernels.source(), wanted, "sm_90")

    assert image and set(names) == set(wanted)


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """The kernels on the host, by name in C++."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    text = f'#define MTMC_THREADS 4\n#include "{SHIM}"\n{noise_kernels.source()}'
    for number, (name, kernel, t) in enumerate(_names()):
        operands, numbers = _KERNELS[kernel]
        letters = [f"n{i}" for i in range(numbers)]
        tensors = [f"{t}* result", *(f"{t}* t{i}" for i in range(operands))]
        parameters = ", ".join([*tensors, *(f"int64 {letter}" for letter in letters)])
        passed = ", ".join(["result", *(f"t{i}" for i in range(operands)), *letters])
        text += (
            f'extern "C" void launch_{number}({parameters}) '
            f"{{ Launch({_BLOCKS}, {name}, {passed}); }}\n"
        )
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "kernels.cc").write_text(text)
    library = folder / "kernels.so"
    command = [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", "-pthread"]
    subprocess.run([*command, "-o", library, folder / "kernels.cc"], check=True)
    loaded = ctypes.CDLL(str(library))
    return {name: loaded[f"launch_{number}"] for number, (name, _, _) in enumerate(_names())}


@pytest.fixture
def on_host(functions, monkeypatch):
    """Lets `disturb` use the kernels, which run on the host; tells the names of those."""
    launched = []

    def launch(name, blocks, device, arguments):
        launched.append(name)
        functions[name](
            *(
                ctypes.c_void_p(a.data_ptr())
                if isinstance(a, torch.Tensor)
                else ctypes.c_longlong(a)
                for a in arguments
            )
        )

    monkeypatch.setattr(noise_kernels, "launch", launch)
    monkeypatch.setattr(scan_kernels, "blocks", lambda wanted, device: _BLOCKS)
    monkeypatch.setattr(scan_kernels, "are_in_reach", lambda tensors: True)
    return launched


def _drawn(count, dtype, seed):
    return torch.randn(count, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def _deviations(before, after, scale, unit):
    return (after.double() - before.double()) / (scale.double() * unit)


def _scales(dtype):
    """(scale, results) that disturb in another way each."""
    total, other = _drawn(20_000, dtype, 1), _drawn(20_000, dtype, 2)
    yield sum_rounding.Roundings(4.0), total
    yield other.abs(), total
    yield sum_rounding.Sums(500, other.square()), total
    yield sum_rounding.Sums(1 << 22, other.square(), total.square() * 3.0, 4.0), total
    # Terms that are equal, and such as nearly are.
    yield sum_rounding.Sums(64, total.square() / 64), total
    yield sum_rounding.Sums(64, total.square() / 64 * (1.0 + 1e-9)), total


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_results_are_off_by_standard_deviations_of_their_scale(on_host, dtype):
    # So large that the noise is not itself lost in the last places.
    unit = 2.0**-4
    for scale, result in _scales(dtype):
        after = result.clone()
        assert noise_kernels.disturb(after, scale, unit, 7, 1)
        tensor = scale.clone() if isinstance(scale, torch.Tensor) else scale.of(result)
        found = _deviations(result, after, tensor, unit)
        size = found.abs()
        assert size.min() > sum_rounding.LEAST_DEVIATIONS - 0.01
        # Half of a half-normal deviate above.
        above = size - sum_rounding.LEAST_DEVIATIONS
        assert abs(above.mean() - 0.5 * math.sqrt(2 / math.pi)) < 0.01
        assert abs((above.square().mean()).sqrt() - 0.5) < 0.01
        assert above.max() < 4.0
        assert abs((found > 0).double().mean() - 0.5) < 0.02
    assert {name.split("<")[0] for name in on_host} == set(_KERNELS) - {"DisturbStatistics"}


@pytest.mark.parametrize("shape", [(6, 300), (5, 300, 7), (4, 300, 5, 6), (2, 300, 3, 2, 4)])
def test_running_statistics_are_off_by_those_of_their_scales(on_host, monkeypatch, shape):
    x = _drawn(math.prod(shape), torch.float32, 5).view(shape) + 0.5
    # What is equal in a channel varies by nothing.
    x[:, 7] = 0.25
    mean, variance = torch.zeros(shape[1]), torch.ones(shape[1])
    seen = []
    disturb = noise_kernels.disturb_statistics
    monkeypatch.setattr(
        noise_kernels, "disturb_statistics", lambda *given: seen.append(given) or True
    )
    with rounding.Disturbed(2.0**-10):
        torch.nn.functional.batch_norm(x, mean, variance, training=True, momentum=0.2)
    statistics = seen[0][0]
    axes = [axis for axis in range(x.dim()) if axis != 1]
    wander = sum_rounding.sum_wander(x, axes).flatten()
    assert torch.allclose(statistics.wander.double(), wander, rtol=1e-5)
    before = mean.clone(), variance.clone()
    scales = statistics.scales()
    assert disturb(statistics, 2.0**-10, 3, 1)
    for old, new, scale in zip(before, (mean, variance), scales):
        size = _deviations(old, new, scale, 2.0**-10).abs()
        assert size.min() > sum_rounding.LEAST_DEVIATIONS - 0.05 and size.max() < 5.0


def test_what_is_zero_or_unbounded_stays_so(on_host):
    zeros = torch.zeros(9)
    sums = sum_rounding.Sums(8, torch.zeros(9))
    assert noise_kernels.disturb(zeros, sums, _UNIT, 1, 1)
    assert not zeros.any()
    ends = torch.tensor([math.inf, -math.inf, math.nan])
    after = ends.clone()
    assert noise_kernels.disturb(after, sum_rounding.Roundings(4.0), _UNIT, 1, 1)
    assert not after.isfinite().any()


def test_noise_is_another_one_for_each_result_and_seed(on_host):
    def noise(seed, number):
        result = torch.ones(1000)
        assert noise_kernels.disturb(result, torch.ones(1000), 2.0**-4, seed, number)
        return result

    one = noise(1, 1)
    assert torch.equal(one, noise(1, 1))
    for other in (noise(1, 2), noise(2, 1)):
        signs = (one - 1) * (other - 1)
        assert 400 < int((signs > 0).sum()) < 600


def test_a_model_is_disturbed_by_kernels_as_by_operators(on_host, monkeypatch):
    torch.manual_seed(3)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.GELU(), torch.nn.AvgPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(8 * 49, 16), torch.nn.Softmax(-1),
    )  # fmt: skip
    x = torch.rand(4, 3, 16, 16)
    with torch.no_grad():
        plain = model(x)

        def change():
            with rounding.Disturbed(_UNIT):
                return (model(x) - plain).double().norm() / plain.double().norm()

        with_kernels = change()
        assert {"DisturbSums<float>", "DisturbElements<float>"} <= set(on_host)
        monkeypatch.setattr(noise_kernels, "disturb", lambda *_: False)
        assert 0.5 < with_kernels / change() < 2.0


def test_what_kernels_do_not_take_is_left_to_operators():
    result = torch.ones(8)
    assert not noise_kernels.disturb(result, torch.ones(8), _UNIT, 1, 1)
    assert torch.equal(result, torch.ones(8))
