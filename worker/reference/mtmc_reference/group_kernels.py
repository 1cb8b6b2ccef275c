# SPDX-License-Identifier: Apache-2.0
"""The sums of `groups` on a GPU, with one read of each operand for rows and magnitudes,
and one more for channels that lie across rows."""

import functools
import pathlib

import torch

from . import layout as layouts
from . import scan_kernels

_SOURCE = pathlib.Path(__file__).with_suffix(".cu")
# MTMC_GROUP_THREADS of the source.
_THREADS = 128
# Elements of a row that one warp sums up, and rows of a column that one thread does.
_STRIP = 4096
_COLUMN_STRIP = 1024


def sums(y, r, layout, top):
    """(rows, channels, magnitudes) on the device: [squares of errors, of elements] by row
    and by channel, with a count by magnitude. None where kernels do not take the tensors.

    What is not finite in `r` counts as 0.
    """
    if not scan_kernels.takes_floats(y, r):
        return None
    return scan_kernels.attempted(lambda: _sums(y, r, layout, top))


def _sums(y, r, layout, top):
    names = f"{scan_kernels.FLOATS[y.dtype]}, {scan_kernels.FLOATS[r.dtype]}"
    strips = -(-layout.row // _STRIP)
    options = {"dtype": torch.float64, "device": r.device}
    pieces = torch.empty(layout.rows * strips, 2, **options)
    blocks = scan_kernels.blocks(-(-len(pieces) * 32 // _THREADS), r.device)
    found = torch.empty(blocks, layouts.MAGNITUDES, 3, **options)
    arguments = [y, r, layout.count, layout.row, strips, _STRIP, top, pieces, found]
    launch(f"ScanRows<{names}>", blocks, r.device, arguments)
    rows = pieces.view(layout.rows, strips, 2).sum(1)
    return rows, _channels(names, y, r, layout, top, rows), found.sum(0)


def _channels(names, y, r, layout, top, rows):
    if not layout.channels:
        return rows[:0]
    if layout.has_channels_of_rows:
        parts = layout.inner // layout.row
        return rows.view(-1, layout.channels, parts, 2).sum((0, 2))
    columns = layout.channels * layout.inner
    across, height = -(-columns // _THREADS), layout.count // columns
    strips = -(-height // _COLUMN_STRIP)
    found = torch.empty(strips, columns, 2, dtype=torch.float64, device=r.device)
    arguments = [y, r, layout.count, columns, _COLUMN_STRIP, top, found]
    launch(f"ScanColumns<{names}>", scan_kernels.blocks(across * strips, r.device), r.device, arguments)
    return found.view(strips, layout.channels, layout.inner, 2).sum((0, 2))


def launch(name, blocks, device, arguments):
    """Enqueues the kernel of that name in C++."""
    scan_kernels.compiled(source(), name, device).launch(blocks, _THREADS, arguments)


@functools.cache
def source():
    """The text of the kernels."""
    return scan_kernels.source() + _SOURCE.read_text(encoding="utf-8")
