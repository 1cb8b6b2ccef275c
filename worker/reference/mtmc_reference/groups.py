# SPDX-License-Identifier: Apache-2.0
"""Root mean square of an error and of its reference, for each group of an output.

The groups are those of `layout`. Sums of squares are taken of elements over the largest
one of the reference (a power of two above it), so that FP32 neither overflows nor loses
what matters. Where the reference is not finite, nothing is summed up.
"""

import dataclasses
import math

import torch

from . import group_kernels
from . import layout as layouts

_CHUNK = 256 * 1024
_CUDA_CHUNK = 64 * 1024 * 1024
# Scales beyond this would overflow in FP32.
_LEAST_TOP = -100
# A magnitude of fewer elements counts with the next larger one.
_LEAST_ELEMENTS = 8


@dataclasses.dataclass
class Groups:
    """Of each group of one output, on the CPU: root mean squares."""

    layout: layouts.Layout
    # Largest element of the reference, and its binary order.
    largest: float
    top: int
    error: torch.Tensor
    size: torch.Tensor
    # Root mean square of the whole reference.
    scale: float

    def name(self, group):
        return self.layout.name(group, self.top)


def measured(pairs, spreads):
    """The Groups of each (actual, reference); None for a pair that is not of floats.

    `spreads` are those of the references.
    """
    enqueued = [
        _Measurement(y, r, spread) if spread is not None and r.numel() else None
        for (y, r), spread in zip(pairs, spreads)
    ]
    there = [one for one in enqueued if one]
    for one, parts in zip(there, _fetched([one.parts for one in there])):
        one.parts = parts
    return [one and one.groups() for one in enqueued]


class _Measurement:
    """What tells the groups of one pair: `parts`, on its device until they are fetched."""

    def __init__(self, y, r, spread):
        self._layout = layouts.layout(tuple(r.shape))
        self._largest = spread.largest() if spread.is_finite() else _largest_finite(r)
        self._top = max(math.frexp(self._largest)[1], _LEAST_TOP)
        if self._layout.is_small:
            self.parts = [y.to(r.device).reshape(-1).double(), r.reshape(-1).double()]
            return
        self.parts = group_kernels.sums(y, r, self._layout, self._top)
        if self.parts is None:
            flat = y.reshape(-1), r.reshape(-1)
            self.parts = _scan(*flat, self._layout, self._top, spread.is_finite())

    def groups(self):
        """The Groups; REQUIRES: the parts lie on the CPU."""
        make = _of_elements if self._layout.is_small else _rooted
        return make(self._layout, self._largest, self._top, *self.parts)


def _fetched(lists):
    """Lists of tensors of fp64 on the CPU, with one transfer from each device."""
    parts = [part for one in lists for part in one]
    fetched = {}
    for device in {part.device for part in parts}:
        there = [part for part in parts if part.device == device]
        flat = torch.cat([part.reshape(-1) for part in there]).cpu()
        pieces = flat.split([part.numel() for part in there])
        fetched |= {id(part): piece.view(part.shape) for part, piece in zip(there, pieces)}
    return [[fetched[id(part)] for part in one] for one in lists]


def _of_elements(layout, largest, top, y, r):
    """Groups of one element each."""
    error, size = (y - r).abs_(), r.abs_()
    has = size.isfinite()
    if not has.all():
        error, size = torch.where(has, error, 0.0), torch.where(has, size, 0.0)
    error = torch.nan_to_num(error, nan=math.inf, posinf=math.inf)
    return Groups(layout, largest, top, error, size, size.square().mean().sqrt().item())


def _largest_finite(r):
    magnitude = torch.nan_to_num(r, nan=0.0, posinf=0.0, neginf=0.0).abs_()
    return magnitude.amax().item()


def _rooted(layout, largest, top, rows, channels, magnitudes):
    """Groups from sums of the squares of errors and elements."""
    magnitudes = _merged(magnitudes)
    sums = torch.cat([rows, channels, magnitudes[:, :2]])
    counts = torch.empty(len(sums), dtype=torch.float64)
    counts[: layout.rows] = layout.row
    counts[layout.rows - 1] = layout.count - layout.row * (layout.rows - 1)
    counts[layout.rows :] = layout.count // max(layout.channels, 1)
    counts[layout.rows + layout.channels :] = magnitudes[:, 2].clamp(min=1)
    unit = 2.0**top
    roots = (sums / counts.unsqueeze(1)).sqrt_().mul_(unit)
    error = torch.nan_to_num(roots[:, 0], nan=math.inf, posinf=math.inf)
    scale = math.sqrt(rows[:, 1].sum().item() / layout.count) * unit
    return Groups(layout, largest, top, error, roots[:, 1].contiguous(), scale)


def _merged(magnitudes):
    """Sums by magnitude, those of few elements counted with the next larger ones."""
    rows = magnitudes.tolist()
    for k in range(len(rows) - 1, 0, -1):
        if rows[k][2] < _LEAST_ELEMENTS:
            rows[k - 1] = [a + b for a, b in zip(rows[k - 1], rows[k])]
            rows[k] = [0.0, 0.0, 0.0]
    return torch.tensor(rows, dtype=torch.float64)


def _scan(y, r, layout, top, is_finite):
    """What `group_kernels.sums` finds."""
    rows = torch.zeros(layout.rows, 2, dtype=torch.float64, device=r.device)
    channels = torch.zeros(layout.channels, 2, dtype=torch.float64, device=r.device)
    magnitudes = torch.zeros(layouts.MAGNITUDES, 3, dtype=torch.float64, device=r.device)
    for start, size in _pieces(layout, _CUDA_CHUNK if r.is_cuda else _CHUNK):
        piece = slice(start, start + size)
        error, squares, bucket = _squares(y[piece].to(r.device), r[piece], top, is_finite)
        _add_rows(rows, error, squares, start, layout)
        if layout.channels:
            _add_channels(channels, error, squares, start, layout)
        _add_magnitudes(magnitudes, error, squares, bucket)
    return rows, channels, magnitudes


def _pieces(layout, chunk):
    """(start, size) of pieces that hold whole rows or lie within one."""
    unit, block = layout.row, layout.channels * layout.inner
    if block % unit == 0 and unit < block <= chunk:
        unit = block
    step = max(chunk // unit, 1) * unit
    size = min(step, max(chunk, layout.row if step == layout.row <= 2 * chunk else 0))
    for start in range(0, layout.count, step):
        stop = min(start + step, layout.count)
        for first in range(start, stop, size):
            yield first, min(stop - first, size)


def _squares(y, r, top, is_finite):
    """Squares of the error and of the elements, and the magnitude of each element."""
    wide = torch.float64 if torch.float64 in (y.dtype, r.dtype) else torch.float32
    r = r.to(wide)
    error = torch.sub(y.to(wide), r)
    if not is_finite:
        has = r.isfinite()
        error = torch.where(has, error, 0.0)
        r = torch.where(has, r, 0.0)
    scaled = r * 2.0**-top
    if wide == torch.float64:
        order = (scaled.view(torch.int64) >> 52).bitwise_and_(2047).neg_().add_(1023)
    else:
        order = (scaled.view(torch.int32) >> 23).bitwise_and_(255).neg_().add_(127)
    bucket = (order >> 2).clamp_(0, layouts.MAGNITUDES - 1)
    return error.mul_(2.0**-top).square_(), scaled.square_(), bucket


def _add_rows(rows, error, squares, start, layout):
    first, whole = start // layout.row, error.numel() // layout.row
    cut = whole * layout.row
    for column, values in enumerate((error, squares)):
        if whole:
            sums = values[:cut].view(whole, layout.row).sum(1)
            rows[first : first + whole, column] += sums
        if cut < values.numel():
            rows[first + whole, column] += values[cut:].sum(dtype=torch.float64)


def _add_channels(channels, error, squares, start, layout):
    """A piece may start within a channel, and holds whole rounds of all of them in between."""
    inner, block = layout.inner, layout.channels * layout.inner
    head = min(-start % block, error.numel())
    rounds = (error.numel() - head) // block
    tail = head + rounds * block
    for column, values in enumerate((error, squares)):
        sums = channels[:, column]
        if rounds:
            whole = values[head:tail].view(rounds, layout.channels, inner)
            sums += whole.sum(0).sum(1) if inner < rounds else whole.sum(2).sum(0)
        for first, part in ((start, values[:head]), (start + tail, values[tail:])):
            if part.numel():
                _add_runs(sums, part, first, inner)


def _add_runs(sums, values, start, inner):
    """Adds consecutive elements, `inner` of each channel, to `sums`."""
    last = start + values.numel() - 1
    owner = torch.arange(start // inner, last // inner + 1, device=values.device)
    owner.remainder_(len(sums))
    head = min(-start % inner, values.numel())
    runs = (values.numel() - head) // inner
    cut = head + runs * inner
    parts = [values[:head].sum().view(1)] * (head > 0)
    parts.append(values[head:cut].view(runs, inner).sum(1))
    parts += [values[cut:].sum().view(1)] * (cut < values.numel())
    sums.index_add_(0, owner, torch.cat(parts).to(sums.dtype))


def _add_magnitudes(magnitudes, error, squares, bucket):
    for column, weights in enumerate((error, squares, None)):
        magnitudes[:, column] += torch.bincount(bucket, weights, layouts.MAGNITUDES)
