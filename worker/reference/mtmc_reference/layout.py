# SPDX-License-Identifier: Apache-2.0
"""Which elements of an output are judged together: rows, channels, magnitudes.

A group of few elements is noisy: an honest run has luck there, and the next one has
none. Short rows are therefore taken together with those that follow, channels of few
elements are left to the rows, and an output of few elements is judged element by
element. A group's number counts elements or rows first, then channels, then magnitudes.
"""

import dataclasses
import functools
import math

# Outputs of so many elements have each of them as a group.
SMALL = 64
# Elements of a row or a channel, at least.
_LEAST = 64
# Elements of a channel that lies across rows, at least.
_LEAST_ACROSS = 16
# Rows or channels, at most: what is known of the groups of an output stays small.
_MOST = 1 << 18
# Magnitudes: OCTAVES binary orders each from the largest element on; the last holds the rest.
MAGNITUDES = 12
OCTAVES = 4


@dataclasses.dataclass(frozen=True)
class Layout:
    """The groups of an output of `count` elements."""

    count: int
    # Length of the last axis, consecutive elements of one group, and how many groups of rows.
    width: int
    row: int
    rows: int
    # Channels (0 where they are not judged), and consecutive elements of each.
    channels: int = 0
    inner: int = 1

    @property
    def is_small(self):
        """Whether each element is a group."""
        return self.count <= SMALL

    @property
    def has_channels_of_rows(self):
        """Whether no row is of two channels."""
        return self.inner % self.row == 0

    def name(self, group, top):
        """What a report calls the group; `top` is the binary order of the largest element."""
        if self.is_small:
            return f"element {group}"
        if group < self.rows:
            return self._row_name(group)
        group -= self.rows
        if group < self.channels:
            return f"channel {group}"
        group -= self.channels
        if group == MAGNITUDES - 1:
            return "elements near 0"
        return f"elements near {2.0 ** (top - OCTAVES * group - OCTAVES // 2):.0e}"

    def _row_name(self, group):
        first = group * self.row // self.width
        last = (min((group + 1) * self.row, self.count) - 1) // self.width
        return f"row {first}" if first == last else f"rows {first} to {last}"


@functools.lru_cache(maxsize=1024)
def layout(shape):
    """The Layout of an output of that shape."""
    count = math.prod(shape)
    width = max(shape[-1], 1) if shape else 1
    if count <= SMALL:
        return Layout(count, width, 1, count)
    channels = shape[1] if len(shape) > 1 else 0
    inner = math.prod(shape[2:])
    if not _are_judged(count, channels, inner):
        return _of_rows(count, width, count // width)
    # Rows of one channel each, where a channel has that many elements in a row.
    plan = _of_rows(count, width, inner // width if inner >= _LEAST else count // width)
    if shape[0] == 1 and inner == plan.row:
        return plan
    return dataclasses.replace(plan, channels=channels, inner=inner)


def _are_judged(count, channels, inner):
    """Whether the channels are groups."""
    if not 1 < channels <= _MOST or count // channels < _LEAST:
        return False
    # Across few rows, they would be nearly as many as the elements.
    return inner >= _LEAST or count >= _LEAST_ACROSS * channels * inner


def _of_rows(count, width, most):
    """The Layout of rows alone; so many of the last axis are put together that they divide
    `most`."""
    merged = max(-(-_LEAST // width), -(-count // width // _MOST))
    merged = min(merged, most)
    if most < count // width:
        merged = next(n for n in range(merged, most + 1) if most % n == 0)
    row = merged * width
    return Layout(count, width, row, -(-count // row))
