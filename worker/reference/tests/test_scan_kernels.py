# SPDX-License-Identifier: Apache-2.0
"""The kernels of `scan_kernels.cu` find what PyTorch's operators find."""

import ctypes
import itertools
import math
import shutil
import subprocess
import time

import pytest
import torch
from host_kernels import SHIM, TO_FLOAT

from mtmc_reference import compare, scan_kernels

_THREADS, _BLOCKS = 4, 3
_FLOATS = list(scan_kernels.FLOATS)
_PAIRS = list(itertools.product(_FLOATS, _FLOATS))
_INTEGERS = list(scan_kernels.INTEGERS)
_COUNTS = (1, 7, 8, 1000, 4099)
_SPECIALS = (math.inf, -math.inf, math.nan)


def _kernels(width):
    """(name in C++, number of operands) of every kernel."""
    names = list(scan_kernels.FLOATS.values())
    for y, r in itertools.product(names, names):
        yield scan_kernels.expression("ScanFloats", f"{y}, {r}", width), 2
        yield scan_kernels.expression("ScanNearness", f"{y}, {r}", width), 2
    for name in names:
        yield scan_kernels.expression("ScanSpread", name, width), 1
    for name in sorted(set(scan_kernels.INTEGERS.values())):
        yield scan_kernels.expression("ScanIntegers", name, width), 2


def test_every_kernel_compiles_for_a_gpu_that_is_not_there():
    compile_kernels = pytest.importorskip("mtmc_reference.cuda_kernel").compile_kernels
    wanted = [name for name, _ in _kernels(8)]
    wanted.append(scan_kernels.expression("ScanFloats", "float, float", 1))

    image, names = compile_kernels(scan_kernels.source(), wanted, "sm_90")

    assert image and set(names) == set(wanted)


def test_a_kernel_that_does_not_compile_says_why():
    compile_kernels = pytest.importorskip("mtmc_reference.cuda_kernel").compile_kernels
    with pytest.raises(RuntimeError, match="undefined_name"):
        compile_kernels("__global__ void f() { undefined_name(); }", ["f"], "sm_90")


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """Launches a kernel on the host; returns its rows."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    folder = tmp_path_factory.mktemp("kernels")
    library = folder / "kernels.so"
    (folder / "kernels.cc").write_text(_host_source())
    command = [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", "-pthread"]
    subprocess.run([*command, "-o", library, folder / "kernels.cc"], check=True)
    functions = ctypes.CDLL(str(library))
    places = {name: number for number, (name, _) in enumerate(_all_kernels())}

    def launch(name, tensors, columns, limits=(math.inf, math.inf)):
        rows = torch.empty(_BLOCKS, columns, dtype=torch.float64)
        operands = [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]
        count = ctypes.c_longlong(tensors[0].numel())
        function = functions[f"launch_{places[name]}"]
        numbers = scan_kernels._numbers("ScanFloats", limits or (0.0, 0.0))
        bits = [ctypes.c_longlong(number) for number in numbers]
        function(*operands, count, *bits, ctypes.c_void_p(rows.data_ptr()))
        return rows

    return launch


def _all_kernels():
    return [*_kernels(8), (scan_kernels.expression("ScanFloats", "float, float", 1), 2)]


def _host_source():
    text = f'#define MTMC_THREADS {_THREADS}\n#include "{SHIM}"\n{scan_kernels.source()}'
    text += TO_FLOAT
    for number, (name, operands) in enumerate(_all_kernels()):
        types = name[name.index("<") + 1 : name.rindex(",")].split(", ")
        types = (types * 2)[:operands]
        letters = "ab"[:operands]
        parameters = "".join(f"const {t}* {x}, " for t, x in zip(types, letters))
        arguments = "".join(f"{x}, " for x in letters)
        limits = "ratio, floor, " if name.startswith("ScanFloats") else ""
        text += (
            f'extern "C" void launch_{number}({parameters}int64 count, int64 ratio, '
            f'int64 floor, double* rows) '
            f"{{ Launch({_BLOCKS}, {name}, {arguments}count, {limits}rows); }}\n"
        )
    return text


def _pair(y_type, r_type, count, generator):
    r = torch.randn(count, generator=generator).to(r_type)
    y = (r.double() + 1e-3 * torch.randn(count, generator=generator)).to(y_type)
    return y, r


def _host_distance(host, y, r, width=8):
    template, names, columns = scan_kernels._pair_kernel(y, r)
    rows = host(scan_kernels.expression(template, names, width), (y, r), columns)
    return scan_kernels._merged_distance(rows)


@pytest.mark.parametrize("y_type, r_type", _PAIRS)
def test_distances_are_those_of_the_operators_to_the_last_bit(host, y_type, r_type):
    generator = torch.Generator().manual_seed(1)
    for count in _COUNTS:
        y, r = _pair(y_type, r_type, count, generator)
        expected = compare.error(y, r)
        back = compare.error(r, y)

        tolerance, swapped, absolute, index, is_special, _ = _host_distance(host, y, r)

        assert (tolerance, absolute) == (expected.tolerance, expected.max_absolute)
        assert (index, is_special) == (expected.worst_index, False)
        assert swapped == back.tolerance


def test_one_element_at_a_time_is_the_same(host):
    y, r = _pair(torch.float32, torch.float32, 1001, torch.Generator().manual_seed(2))

    aligned = y[1:].clone(), r[1:].clone()
    assert _host_distance(host, y[1:], r[1:], 1) == _host_distance(host, *aligned)


@pytest.mark.parametrize("place", [0, 500, 1000])
def test_an_element_is_far_beyond_both_limits(on_host, monkeypatch, place):
    r = torch.ones(1001)
    r[place] = 0.01
    y = r.clone()
    y[place] += 1e-4
    limits = [(2e-2, 0.0), (0.0, 9e-5), (1e-3, 2e-4), (1e-3, 5e-5)]

    def far():
        return [compare.errors([(y, r)], [limit])[0].is_far for limit in limits]

    assert far() == [False, True, False, True]
    with_kernels = far()
    monkeypatch.setattr(scan_kernels, "_is_possible", False)
    assert far() == with_kernels


def test_the_first_of_equal_elements_is_the_worst(host):
    r = torch.zeros(3000)
    y = torch.zeros(3000)
    y[[77, 900, 2999]] = torch.tensor([0.5, -0.5, 0.5])

    assert _host_distance(host, y, r)[3] == 77 == compare.error(y, r).worst_index


@pytest.mark.parametrize("y_type, r_type", _PAIRS)
def test_specials_are_seen_wherever_they_are(host, y_type, r_type):
    generator = torch.Generator().manual_seed(3)
    for special, place in itertools.product(_SPECIALS, (0, 500, 1002)):
        for which in range(2):
            pair = _pair(y_type, r_type, 1003, generator)
            pair[which][place] = special
            assert _host_distance(host, *pair)[4]
    largest = torch.tensor([3e38])
    assert _host_distance(host, largest, -largest)[4]


@pytest.mark.parametrize("dtype", _INTEGERS)
def test_integers_differ_or_do_not(host, dtype):
    r = torch.arange(2003).remainder(2 if dtype == torch.bool else 100).to(dtype)
    assert not _host_distance(host, r.clone(), r)[4]
    for place in (0, 1001, 2002):
        y = r.clone()
        y[place] = not y[place] if dtype == torch.bool else y[place] + 1
        assert _host_distance(host, y, r)[4]


@pytest.mark.parametrize("dtype", _FLOATS)
def test_a_spread_is_that_of_the_operators(host, dtype):
    generator = torch.Generator().manual_seed(4)
    name = scan_kernels.expression("ScanSpread", scan_kernels.FLOATS[dtype], 8)
    for count in _COUNTS:
        x = (torch.randn(count, generator=generator) + 100).to(dtype)
        row = scan_kernels._merged_range(host(name, (x,), 4))
        found, expected = compare._kernel_spread(count, *row), compare.spreads([x])[0]

        assert (found.low, found.high) == (expected.low, expected.high)
        assert found.mean == pytest.approx(expected.mean, rel=1e-14)
    x[-1] = math.nan
    found = compare._kernel_spread(count, *scan_kernels._merged_range(host(name, (x,), 4)))
    assert found == compare.spreads([x])[0]


@pytest.mark.parametrize("y_type, r_type", _PAIRS)
def test_sums_of_squares_are_those_of_the_operators(host, y_type, r_type):
    y, r = _pair(y_type, r_type, 4099, torch.Generator().manual_seed(5))
    names = f"{scan_kernels.FLOATS[y_type]}, {scan_kernels.FLOATS[r_type]}"
    rows = host(scan_kernels.expression("ScanNearness", names, 8), (y, r), 3)

    assert rows.sum(dim=0).tolist() == pytest.approx(compare._chunk_nearness(y, r), rel=1e-12)


@pytest.fixture
def on_host(host, monkeypatch):
    """Lets `compare` use the kernels, which run on the host."""

    def launched(template, names, columns, limits, tensors):
        return host(scan_kernels.expression(template, names, 8), tensors, columns, limits)

    monkeypatch.setattr(scan_kernels, "are_in_reach", lambda tensors: scan_kernels._is_possible)
    monkeypatch.setattr(scan_kernels, "_launched", launched)
    monkeypatch.setattr(scan_kernels, "_is_possible", True)


def _outputs():
    """Pairs of outputs: close, equal, special, integers that differ, of mixed types."""
    generator = torch.Generator().manual_seed(7)
    close = _pair(torch.float32, torch.float32, 5000, generator)
    special = [tensor.clone() for tensor in close]
    special[0][77], special[1][78] = math.nan, math.inf
    whole = torch.arange(100), torch.arange(100).roll(1)
    mixed = torch.arange(100).float(), torch.arange(100)
    return [close, (close[0], close[0]), special, whole, mixed, (torch.empty(0), torch.empty(0))]


def test_a_comparison_is_the_same_with_and_without_kernels(on_host, monkeypatch):
    pairs = _outputs()
    tensors = [tensor for pair in pairs for tensor in pair]

    def judged():
        return (
            [(e.tolerance, e.max_absolute, e.worst_index) for e in compare.errors(pairs)],
            compare.tolerances(pairs),
            [compare.are_allclose([pair], 2e-3) for pair in pairs],
            [compare.relative_error(*pair) <= 0.25 for pair in pairs[:3]],
            [spread.is_finite() for spread in compare.spreads(tensors)],
            [(s.low, s.high, pytest.approx(s.mean)) for s in compare.spreads(tensors)],
        )

    with_kernels = judged()
    found = compare.error(*pairs[0])
    monkeypatch.setattr(scan_kernels, "_is_possible", False)
    assert with_kernels == judged()
    assert found.swapped == compare.error(*reversed(pairs[0])).tolerance
    assert compare.is_allclose(*pairs[0], found.swapped, found)
    assert not compare.is_allclose(*pairs[0], found.swapped * 0.999, found)


def test_operators_compare_where_kernels_do_not_compile(on_host, monkeypatch, capfd):
    def fail(*_):
        raise RuntimeError("no such architecture")

    monkeypatch.setattr(scan_kernels, "_launched", fail)
    pairs = _outputs()

    found = compare.errors(pairs)
    assert found == compare.errors(pairs)

    assert not scan_kernels._is_possible
    assert capfd.readouterr().err.count("no such architecture") == 1


class _OnGpu(torch.Tensor):
    """A tensor on a CPU that says it is on a GPU."""

    @property
    def device(self):
        return torch.device("cuda", 0)


def test_kernels_take_dense_tensors_alone():
    dense = torch.rand(4, 6).as_subclass(_OnGpu)
    one = torch.zeros(()).expand(4, 6).as_subclass(_OnGpu)

    assert scan_kernels.takes_float(dense) and scan_kernels.takes_pair(dense, dense)
    for sparse in (one, dense[:, ::2], dense.t()):
        assert not scan_kernels.takes_float(sparse)
        assert not scan_kernels.takes_pair(dense, sparse)
        assert not scan_kernels.takes_pair(sparse, dense)


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def _judged(pair):
    """(Error, whether it is what the operators find) on the GPU."""
    assert scan_kernels.takes_pair(*pair)
    found = compare.error(*pair)
    expected = compare.error(*(tensor.cpu() for tensor in pair))
    names = ("tolerance", "max_absolute", "worst_index")
    return found, all(getattr(found, n) == getattr(expected, n) for n in names)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("y_type, r_type", _PAIRS)
def test_a_gpu_agrees_with_the_operators(y_type, r_type):
    generator = torch.Generator().manual_seed(6)
    for count in (*_COUNTS, 3_000_001):
        y, r = (t.cuda() for t in _pair(y_type, r_type, count, generator))
        for pair in ((y, r), (y[1:], r[1:])):
            found, is_equal = _judged(pair)
            assert is_equal and (count == 1 or found.swapped is not None)
        spread = compare.spreads([y])[0]
        expected = compare.spreads([y.cpu()])[0]
        assert (spread.low, spread.high) == (expected.low, expected.high)
        sums = scan_kernels.nearness(y, r)
        assert sums == pytest.approx(compare._chunk_nearness(y, r), rel=1e-10)
        for special in _SPECIALS:
            y[-1] = special
            assert _judged((y, r))[1] and not compare.spreads([y])[0].is_finite()


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("dtype", _INTEGERS)
def test_a_gpu_sees_integers_that_differ(dtype):
    r = torch.arange(100_003).remainder(2).to(dtype).cuda()
    y = r.clone()
    assert _judged((y, r))[0].tolerance == 0
    y[50_000] = 1 - r[50_000].int()
    assert _judged((y, r))[1]


@pytest.mark.gpu
@needs_gpu
def test_a_gpu_scans_at_the_speed_of_its_memory():
    x = torch.rand(1 << 30, device="cuda")
    y = x + 1e-4 * torch.rand_like(x)
    for name, function, size in (
        ("scan", lambda: compare.errors([(y, x)]), 8 << 30),
        ("spread", lambda: compare.spreads([x]), 4 << 30),
        ("near", lambda: compare.relative_error(y, x), 8 << 30),
    ):
        function()
        start = time.perf_counter()
        function()
        seconds = time.perf_counter() - start
        print(f"{name}: {seconds * 1e3:.2f} ms, {size / seconds / 1e9:.0f} GB/s")
