# SPDX-License-Identifier: Apache-2.0
"""One tensor against another: few passes, and one transfer from the device for all.

The distance of y from r is the smallest t with |y - r| <= t + t * |r| for every
element. FP32 is precise enough for it: the difference of two close numbers is
exact. On CUDA one kernel reads each operand once (`scan_kernels`); elsewhere, and
for what no kernel takes, PyTorch's operators go through chunks, so that
temporaries stay small. Both give the same numbers.
"""

import dataclasses
import math

import torch

from . import scan_kernels

# Elements of one chunk. On a CPU its temporaries should stay in the cache
# (256K * 4 bytes); on a GPU they are 256 MiB each and launches are few.
_CPU_CHUNK = 256 * 1024
_CUDA_CHUNK = 64 * 1024 * 1024


@dataclasses.dataclass(frozen=True)
class Error:
    """Distance of an output from its reference; infinite where NaN or Inf differ."""

    # Smallest t with |y - r| <= t + t * |r| for every element.
    tolerance: float
    max_absolute: float
    # Row-major index of the element that decides `tolerance`.
    worst_index: int
    # Smallest t with |y - r| <= t + t * |y| for every element; None where that would
    # have taken passes of its own.
    swapped: float | None = None
    # Whether an element is further away than the limits of its pair.
    is_far: bool = True


# Nothing is far.
_NO_LIMIT = (math.inf, math.inf)


def error(actual, expected):
    """Error of `actual` against `expected`; see `errors`."""
    return errors([(actual, expected)])[0]


def errors(pairs, limits=None):
    """Error of each (actual, expected) pair; shapes agree, types may differ.

    NaN matches NaN only and an infinity itself only. Integers that differ at all
    have a tolerance above 0. An element is far where |y - r| is above both ratio |r| and
    floor, the pair's of `limits`.
    """
    return [
        _exact_error(y, r) if found.is_special else _located(y, r, found)
        for (y, r), found in zip(pairs, _scan(pairs, limits))
    ]


def tolerances(pairs):
    """The `tolerance` of each pair, without looking for the worst element."""
    return [
        _exact_error(y, r).tolerance if found.is_special else found.tolerance
        for (y, r), found in zip(pairs, _scan(pairs))
    ]


def are_allclose(pairs, tolerance):
    """Whether `torch.allclose(r, y, tolerance, tolerance)` for each (y, r) of `pairs`.

    NaN is close to nothing.
    """
    swapped = [(r, y) for y, r in pairs]
    for (r, y), found in zip(swapped, _scan(swapped)):
        if found.is_special:
            if not _is_allclose(y, r, tolerance):
                return False
        elif found.tolerance > tolerance:
            return False
    return True


def is_allclose(actual, expected, tolerance, found=None):
    """`are_allclose` of one pair, whose Error may have been `found` before."""
    if found is None or found.swapped is None:
        return are_allclose([(actual, expected)], tolerance)
    return found.swapped <= tolerance


@dataclasses.dataclass(frozen=True)
class Spread:
    """Range and mean of a tensor; infinite where an element is not finite."""

    low: float
    high: float
    mean: float
    elements: int

    def zeros_tolerance(self):
        """The tolerance at which zeros everywhere would pass."""
        if not self.elements:
            return 0.0
        return max(_distance(0.0, self.low), _distance(0.0, self.high))

    def mean_tolerance(self):
        """The tolerance at which the mean everywhere would pass."""
        if not self.elements:
            return 0.0
        return max(_distance(self.mean, self.low), _distance(self.mean, self.high))

    def is_finite(self):
        """Whether every element is; so it is where there are none."""
        return not self.elements or math.isfinite(self.low) and math.isfinite(self.high)

    def largest(self):
        """Largest absolute value."""
        return max(abs(self.low), abs(self.high))


def float_spreads(tensors):
    """The Spread of each tensor with floating-point elements, None for others."""
    floats = [tensor for tensor in tensors if tensor.is_floating_point()]
    found = iter(spreads(floats))
    return [next(found) if tensor.is_floating_point() else None for tensor in tensors]


def are_finite(tensor):
    """Whether all its elements are."""
    return spreads([tensor])[0].is_finite()


def spreads(tensors):
    """The Spread of each tensor, with one transfer for all."""
    return _split(tensors, scan_kernels.takes_float, _kernel_spreads, _chunk_spreads)


def _split(items, is_taken, by_kernel, by_chunk):
    """One result for each item, from the kernels where these take it and work."""
    taken = [item for item in items if is_taken(item)]
    fast = by_kernel(taken) if taken else []
    if fast is None:
        return by_chunk(items)
    slow = by_chunk([item for item in items if not is_taken(item)])
    fast, slow = iter(fast), iter(slow)
    return [next(fast if is_taken(item) else slow) for item in items]


def _kernel_spreads(tensors):
    found = scan_kernels.ranges(tensors)
    return found and [_kernel_spread(x.numel(), *row) for x, row in zip(tensors, found)]


def _kernel_spread(count, low, high, total, is_special):
    if is_special or not math.isfinite(low + high):
        return Spread(-math.inf, math.inf, math.inf, count)
    return Spread(low, high, total / count, count)


def _chunk_spreads(tensors):
    rows, owners = [], []
    for number, tensor in enumerate(tensors):
        flat = tensor.reshape(-1)
        for start in range(0, flat.numel(), _chunk_size(flat)):
            chunk = flat[start : start + _chunk_size(flat)]
            low, high = chunk.aminmax()
            total = chunk.sum(dtype=torch.float64)
            rows.append(torch.stack([low.double(), high.double(), total]))
            owners.append(number)
    answer = [Spread(math.inf, -math.inf, 0.0, t.numel()) for t in tensors]
    for number, (low, high, total) in zip(owners, _fetched(rows)):
        one, count = answer[number], tensors[number].numel()
        if not math.isfinite(low + high):
            low, high, total = -math.inf, math.inf, math.inf
        answer[number] = Spread(
            min(one.low, low), max(one.high, high), one.mean + total / count, count
        )
    return answer


def relative_error(actual, expected):
    """Root mean square of y - r over that of r less its mean, which is the smaller part of r;
    infinite where an element is not finite, or nothing is left of r."""
    error_squares, squares, total = _sums(actual, expected)
    spread = squares
    if expected.numel() > 1:
        spread = squares - total**2 / expected.numel()
    if not error_squares < math.inf:
        return math.inf
    if error_squares == 0:
        return 0.0
    return math.sqrt(error_squares / spread) if 0 < spread < math.inf else math.inf


def root_mean_squares(actual, expected):
    """Those of y - r and of r, not finite where one of their elements is not."""
    error_squares, squares, _ = _sums(actual, expected)
    count = max(expected.numel(), 1)
    return math.sqrt(error_squares / count), math.sqrt(squares / count)


def _sums(actual, expected):
    """Sums of (y - r)^2, of r^2 and of r."""
    sums = None
    if scan_kernels.takes_floats(actual, expected):
        sums = scan_kernels.nearness(actual, expected)
    return sums or _chunk_nearness(actual, expected)


def _chunk_nearness(actual, expected):
    sums = torch.zeros(3, dtype=torch.float64, device=expected.device)
    for _, y, r in chunks(actual, expected):
        y, r = y.double(), r.double()
        sums += torch.stack([(y - r).square().sum(), r.square().sum(), r.sum()])
    return sums.tolist()


def _distance(y, r):
    return abs(y - r) / (1.0 + abs(r)) if math.isfinite(r) else math.inf


@dataclasses.dataclass
class _Found:
    tolerance: float = 0.0
    max_absolute: float = 0.0
    # First element of the chunk that decides.
    start: int = 0
    # NaN, an infinity or a differing integer was met: the values say nothing.
    is_special: bool = False
    # The element that decides, and the tolerance with the operands swapped, where a
    # kernel has found them.
    index: int | None = None
    swapped: float | None = None
    is_far: bool = False


def _scan(pairs, limits=None):
    items = [(*pair, limit) for pair, limit in zip(pairs, limits or [_NO_LIMIT] * len(pairs))]
    return _split(items, _is_kernels_pair, _kernel_scan, _chunk_scan)


def _is_kernels_pair(item):
    return scan_kernels.takes_pair(*item[:2])


def _kernel_scan(items):
    pairs = [item[:2] for item in items]
    found = scan_kernels.distances(pairs, [limit for _, _, limit in items])
    return found and [_kernel_found(*row) for row in found]


def _kernel_found(tolerance, swapped, absolute, index, is_special, is_far):
    is_special = is_special or not math.isfinite(tolerance + absolute)
    return _Found(tolerance, absolute, 0, is_special, index, swapped, is_far)


def _chunk_scan(items):
    rows, owners = [], []
    for number, (actual, expected, limit) in enumerate(items):
        for start, y, r in chunks(actual, expected):
            rows.append(_chunk_row(y, r, limit))
            owners.append((number, start))
    found = [_Found() for _ in items]
    for (number, start), (needed, absolute, is_far) in zip(owners, _fetched(rows)):
        one = found[number]
        one.is_far = one.is_far or bool(is_far)
        if not math.isfinite(needed + absolute):
            one.is_special = True
        elif needed > one.tolerance:
            one.tolerance, one.start = needed, start
        one.max_absolute = max(one.max_absolute, absolute)
    return found


def _fetched(rows):
    return torch.stack(rows).tolist() if rows else []


def _chunk_row(y, r, limit):
    """(largest needed tolerance, largest absolute difference, whether one is far) as a
    device tensor."""
    if not (y.is_floating_point() and r.is_floating_point()):
        differs = (y != r).any()
        row = torch.where(differs, math.nan, 0.0).double()
        return torch.stack([row, row, torch.zeros_like(row)])
    needed = _difference(y, r)
    absolute = needed.amax()
    is_far = torch.zeros_like(absolute)
    if limit != _NO_LIMIT:
        ratio, floor = limit
        is_far = (needed > r.to(needed.dtype).abs().mul_(ratio).clamp_(min=floor)).any()
    # Also NaN where r is infinite: such chunks are special.
    needed = needed.div_(_scale(y, r)).amax()
    return torch.stack([needed, absolute, is_far.to(needed.dtype)]).double()


def _difference(y, r):
    return torch.sub(y.to(_wider(y, r)), r).abs_()


def _scale(y, r):
    """1 + |r|"""
    return r.to(_wider(y, r)).abs().add_(1)


def _wider(y, r):
    return torch.float64 if torch.float64 in (y.dtype, r.dtype) else torch.float32


def _located(actual, expected, found):
    """The Error, with the position of the worst element."""
    index = found.index
    if found.tolerance == 0.0:
        index = 0
    elif index is None:
        chunk = slice(found.start, found.start + _chunk_size(expected))
        y, r = actual.reshape(-1)[chunk].to(expected.device), expected.reshape(-1)[chunk]
        index = found.start + _difference(y, r).div_(_scale(y, r)).argmax().item()
    return Error(found.tolerance, found.max_absolute, index, found.swapped, found.is_far)


def _exact_error(actual, expected):
    worst, largest, index = 0.0, 0.0, 0
    for start, y, r in chunks(actual, expected):
        needed, absolute = _element_errors(y, r)
        value, position = needed.max(dim=0)
        if value.item() > worst:
            worst, index = value.item(), start + position.item()
        largest = max(largest, absolute.max().item())
    return Error(worst, largest, index)


def _element_errors(y, r):
    same = y == r
    if y.is_floating_point() and r.is_floating_point():
        same |= torch.isnan(y) & torch.isnan(r)
    y, r = y.double(), r.double()
    absolute = (y - r).abs()
    needed = absolute / (1.0 + r.abs())
    # Where one is NaN or infinite and the other is not, no tolerance is enough.
    absolute = torch.nan_to_num(absolute, nan=math.inf, posinf=math.inf)
    needed = torch.nan_to_num(needed, nan=math.inf, posinf=math.inf)
    needed = torch.where(torch.isinf(y) | torch.isinf(r), math.inf, needed)
    # Large integers that differ can be equal as fp64.
    needed = needed.clamp_(min=torch.finfo(torch.float64).tiny)
    zero = needed.new_zeros(())
    return torch.where(same, zero, needed), torch.where(same, zero, absolute)


def _is_allclose(actual, expected, tolerance):
    return all(
        torch.allclose(r, y.to(r.dtype), atol=tolerance, rtol=tolerance)
        for _, y, r in chunks(actual, expected)
    )


def _chunk_size(tensor):
    return _CUDA_CHUNK if tensor.is_cuda else _CPU_CHUNK


def chunks(actual, expected):
    """(start, part of `actual`, part of `expected`), one piece of the elements after another."""
    y, r = actual.reshape(-1), expected.reshape(-1)
    size = _chunk_size(expected)
    for start in range(0, r.numel(), size):
        chunk = slice(start, start + size)
        yield start, y[chunk].to(r.device), r[chunk]
