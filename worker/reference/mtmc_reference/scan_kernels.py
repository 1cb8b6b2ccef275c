# SPDX-License-Identifier: Apache-2.0
"""The scans of `compare` on a GPU, each with one read of its operands.

Every function takes many tensors, which are dense, and fetches what was found once. The kernels are
in `scan_kernels.cu` and are compiled when they are first used. Where that is
impossible, nothing is `taken` from then on, and one line on the standard error
says why.
"""

import functools
import pathlib
import struct
import sys

import torch

_SOURCE = pathlib.Path(__file__).with_suffix(".cu")
# Threads of a block: MTMC_THREADS of the source.
_THREADS = 256
_BLOCKS_PER_PROCESSOR = 8
# Elements that a thread reads at once from dense, aligned tensors.
_WIDTH = 8
_ALIGNMENT = 16

FLOATS = {
    torch.float64: "double",
    torch.float32: "float",
    torch.float16: "Fp16",
    torch.bfloat16: "Bf16",
}
# Integers are compared bit by bit, whether they have a sign or not.
INTEGERS = {
    torch.bool: "Bool",
    torch.uint8: "unsigned char",
    torch.int8: "unsigned char",
    torch.int16: "unsigned short",
    torch.int32: "unsigned",
    torch.int64: "unsigned long long",
}

# False once a kernel could not be compiled.
_is_possible = True


def takes_pair(y, r):
    """Whether `distances` can compare the two."""
    is_integer = y.dtype == r.dtype and y.dtype in INTEGERS
    return takes_floats(y, r) or (is_integer and are_in_reach([y, r]))


def takes_floats(y, r):
    """Whether `nearness` can, too."""
    return y.dtype in FLOATS and r.dtype in FLOATS and are_in_reach([y, r])


def takes_float(x):
    """Whether `ranges` can sum up the tensor."""
    return x.dtype in FLOATS and x.numel() > 0 and are_in_reach([x])


def are_in_reach(tensors):
    """Whether a kernel may read the tensors one element after the other, all on one GPU."""
    device = tensors[0].device
    if not _is_possible or device.type != "cuda":
        return False
    # Others, such as one number that stands for many, have fewer elements in memory.
    return all(x.device == device and x.is_contiguous() for x in tensors)


def distances(pairs, limits):
    """[largest t of |y - r| <= t + t |r|, of |y - r| <= t + t |y|, largest |y - r|, index
    that decides the first, whether one is not finite, whether one is far] of each pair that
    is taken.

    An integer that differs is not finite. An element is far if it is further away than both
    ratio |r| and floor, which are the pair's of `limits`. None where the kernels do not
    compile.
    """
    kernels = [(*_pair_kernel(y, r), limit) for (y, r), limit in zip(pairs, limits)]
    return _found(kernels, pairs, _merged_distance)


def nearness(y, r):
    """Sums over (y - r)**2, r**2 and r of two tensors of floats; None as above."""
    names = f"{FLOATS[y.dtype]}, {FLOATS[r.dtype]}"
    kernels = [("ScanNearness", names, 3, ())]
    found = _found(kernels, [(y, r)], lambda rows: rows.sum(dim=0).tolist())
    return found and found[0]


def ranges(tensors):
    """[low, high, sum, whether one is not finite] of each tensor, none of them empty; None
    as above."""
    kernels = [("ScanSpread", FLOATS[x.dtype], 4, ()) for x in tensors]
    return _found(kernels, [(x,) for x in tensors], _merged_range)


def expression(template, names, width):
    """A kernel's name in C++."""
    return f"{template}<{names}, {width}>"


@functools.cache
def source():
    """The text of the kernels."""
    return _SOURCE.read_text(encoding="utf-8")


def _pair_kernel(y, r):
    """(template, types, columns of a row)"""
    if y.dtype in INTEGERS:
        return "ScanIntegers", INTEGERS[y.dtype], 1
    return "ScanFloats", f"{FLOATS[y.dtype]}, {FLOATS[r.dtype]}", 6


def attempted(function):
    """The result of `function`, which launches kernels; None where they do not compile."""
    global _is_possible
    try:
        return function()
    except (ImportError, OSError, RuntimeError) as problem:
        if isinstance(problem, torch.cuda.OutOfMemoryError):
            raise
        _is_possible = False
        print(f"no scan kernels, PyTorch's operators instead: {problem}", file=sys.stderr)
        return None


def _found(kernels, operands, merged):
    """`merged` of the rows of each launch, all of which are fetched at once."""
    launched = attempted(
        lambda: [_launched(*kernel, tensors) for kernel, tensors in zip(kernels, operands)]
    )
    if not launched:
        return launched
    values = torch.cat([rows.view(-1) for rows in launched]).cpu()
    sizes = [rows.numel() for rows in launched]
    return [
        merged(part.view(rows.shape)) for part, rows in zip(values.split(sizes), launched)
    ]


def _launched(template, names, columns, limits, tensors):
    """The rows of one launch, on the device."""
    count, device = tensors[0].numel(), tensors[0].device
    width = _WIDTH if all(x.data_ptr() % _ALIGNMENT == 0 for x in tensors) else 1
    count_of_rows = blocks(-(-count // (_THREADS * width)), device)
    rows = torch.empty(count_of_rows, columns, dtype=torch.float64, device=device)
    kernel = compiled(source(), expression(template, names, width), device)
    kernel.launch(len(rows), _THREADS, [*tensors, count, *_numbers(template, limits), rows])
    return rows


def _numbers(template, limits):
    """The limits as the kernel takes them: the bits of doubles."""
    if template != "ScanFloats":
        return []
    return [bits_of(limit) for limit in limits]


def bits_of(number):
    """A double as kernels take it, an integer of 64 bits."""
    return struct.unpack("q", struct.pack("d", number))[0]


def blocks(wanted, device):
    """So many blocks, or as many as fill the device, whose threads take several turns then."""
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    return max(min(wanted, processors * _BLOCKS_PER_PROCESSOR), 1)


@functools.cache
def compiled(text, name, device):
    """The kernel of that name in C++ in a source text, compiled once on each device."""
    from .cuda_kernel import Kernel

    return Kernel(text, name, device)


def _merged_distance(rows):
    if rows.shape[1] == 1:
        return [0.0, 0.0, 0.0, 0, bool(rows.any()), False]
    tolerance, swapped, absolute = rows[:, :3].amax(dim=0).tolist()
    index = int(rows[rows[:, 0] == tolerance, 3].amin())
    is_special, is_far = rows[:, 4:].amax(dim=0).bool().tolist()
    return [tolerance, swapped, absolute, index, is_special, is_far]


def _merged_range(rows):
    low, high = rows[:, 0].amin().item(), rows[:, 1].amax().item()
    return [low, high, rows[:, 2].sum().item(), bool(rows[:, 3].any())]
