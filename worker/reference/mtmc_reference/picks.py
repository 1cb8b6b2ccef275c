# SPDX-License-Identifier: Apache-2.0
"""Indices that an operator picked by score: an argmax, a top-k, a sort, a max pooling.

Which of two close scores is the larger is decided by rounding, so an index says little by
itself. What counts is the score of what was picked. `Scores` watches a run, and remembers
what each operator picked from, and what became of its indices afterwards.
"""

import dataclasses
import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .schema import arguments_by_name

# Operators that pick.
_PICKS = "argmax argmin max min topk sort kthvalue median nanmedian".split()
# Operators that pick of windows, by how many axes those have.
_POOLS = {"max_pool2d_with_indices": 2, "max_pool3d_with_indices": 3}
_SETS = ("topk", "sort")
# Operators that hand indices on: as they are, in another form, or a part of them.
_CASTS = ("_to_copy", "clone", "contiguous", "alias", "detach")
_FORMS = (
    "view _unsafe_view reshape squeeze unsqueeze permute transpose t select slice".split()
)


@dataclasses.dataclass
class Pick:
    """What an operator picked: (before, length, after) is the form of its scores."""

    scores: torch.Tensor
    form: tuple
    # How many it picks of each row, in order of their scores or in any.
    count: int
    is_ordered: bool
    # Whether no element may be picked twice.
    is_set: bool
    indices: torch.Tensor
    # Whether of equal scores the first comes first.
    is_stable: bool = False

    def places(self, positions, indices):
        """Flat positions among the scores of `indices`, which the results at flat
        `positions` may be; None where one is out of range."""
        _, length, after = self.form
        if indices.numel() and not 0 <= indices.min() <= indices.max() < length:
            return None
        row = positions // (self.count * after)
        return (row * length + indices) * after + positions % after

    def needed(self, positions, indices, unit):
        """The tolerance at which `indices` are as good as those of the run; infinite where
        they could not be its indices. Scores count in `unit`."""
        positions, indices = positions.reshape(-1), indices.reshape(-1).long()
        best = self.places(positions, self.indices.reshape(-1)[positions])
        places = self.places(positions, indices)
        if places is None or self.is_set and places.unique().numel() < places.numel():
            return float("inf")
        scores = self.scores.reshape(-1)
        got, want = scores[places], scores[best]
        if self.is_stable and (places[got == want] != best[got == want]).any():
            return float("inf")
        if not self.is_ordered and positions.numel() == self.indices.numel():
            got, want = self._sorted(positions, got), self._sorted(positions, want)
        same = (got == want) | (got.isnan() & want.isnan())
        if not scores.is_floating_point():
            return 0.0 if same.all() else float("inf")
        got, want = got.double() / unit, want.double() / unit
        distance = (got - want).abs() / (1 + want.abs())
        distance = torch.nan_to_num(distance, nan=float("inf"), posinf=float("inf"))
        distance = torch.where(same, 0.0, distance)
        return distance.amax().item() if distance.numel() else 0.0

    def _sorted(self, positions, values):
        placed = torch.empty_like(values)
        placed[positions] = values
        before, _, after = self.form
        return placed.view(before, self.count, after).sort(dim=1).values.reshape(-1)


@dataclasses.dataclass
class WindowPick(Pick):
    """What a max pooling picked of each window. `windows` has (extent, places of the result,
    size, stride, padding, dilation) of each axis; an index counts in all of a plane."""

    windows: tuple = ()

    def places(self, positions, indices):
        planes = positions
        rest = indices
        for extent, count, size, stride, padding, dilation in reversed(self.windows):
            offset = rest % extent + padding - planes % count * stride
            if ((offset % dilation != 0) | (offset < 0) | (offset >= size * dilation)).any():
                return None
            planes, rest = planes // count, rest // extent
        if rest.any():
            return None
        return planes * math.prod(window[0] for window in self.windows) + indices


class Scores(TorchDispatchMode):
    """Remembers picks while active, in the order in which they are made."""

    def __init__(self):
        super().__init__()
        self.picks = []
        # (tensor, its Pick, flat position in the pick's result of each element) by id.
        self._tracked = {}

    def __enter__(self):
        # A run that found too little memory is made again from its start.
        self.picks.clear()
        self._tracked.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func.namespace != "aten" or not args or not isinstance(args[0], torch.Tensor):
            return out
        name = func._schema.name.split("::")[1]
        if name in _PICKS:
            self._remember(func, name, args, kwargs, out)
        elif name in _POOLS:
            self._remember_windows(func, _POOLS[name], args, kwargs, out[1])
        elif id(args[0]) in self._tracked and isinstance(out, torch.Tensor):
            _, pick, positions = self._tracked[id(args[0])]
            if name in _FORMS:
                positions = func(positions, *args[1:], **kwargs)
            if name in _FORMS or name in _CASTS and positions.shape == out.shape:
                self._tracked[id(out)] = (out, pick, positions)
        return out

    def find(self, output):
        """(Pick, positions) of an output of the run; None where nothing picked it."""
        for tensor, pick, positions in reversed(self._tracked.values()):
            if tensor.shape == output.shape and torch.equal(tensor.long(), output.long()):
                return pick, positions
        return None

    def byte_count(self):
        """Bytes of all scores."""
        return sum(pick.scores.nbytes for pick in self.picks)

    def _remember(self, func, name, args, kwargs, out):
        indices = out if isinstance(out, torch.Tensor) else out[-1]
        if indices.is_floating_point() or func._schema.overload_name == "other":
            return
        if name not in ("argmax", "argmin") and isinstance(out, torch.Tensor):
            return
        named = arguments_by_name(func, args, kwargs)
        scores, axis = named["self"], named.get("dim", -1 if name[:3] != "arg" else None)
        before, length, after = 1, scores.numel(), 1
        if axis is not None and scores.dim():
            axis %= scores.dim()
            before = scores.shape[:axis].numel()
            length, after = scores.shape[axis], scores.shape[axis + 1 :].numel()
        count = indices.numel() // max(before * after, 1)
        is_ordered = name != "topk" or named.get("sorted", True)
        is_stable = bool(named.get("stable")) and not scores.is_floating_point()
        form = (before, length, after)
        pick = Pick(scores, form, count, is_ordered, name in _SETS, indices, is_stable)
        self._track(indices, pick)

    def _remember_windows(self, func, axes, args, kwargs, indices):
        named = arguments_by_name(func, args, kwargs)
        scores = named["self"]
        size = _of_each_axis(named["kernel_size"], axes)
        windows = zip(
            scores.shape[-axes:],
            indices.shape[-axes:],
            size,
            _of_each_axis(named.get("stride") or size, axes),
            _of_each_axis(named.get("padding", 0), axes),
            _of_each_axis(named.get("dilation", 1), axes),
        )
        form = (1, scores.numel(), 1)
        pick = WindowPick(scores, form, 1, True, False, indices, windows=tuple(windows))
        self._track(indices, pick)

    def _track(self, indices, pick):
        self.picks.append(pick)
        positions = torch.arange(indices.numel(), device=indices.device).view(indices.shape)
        self._tracked[id(indices)] = (indices, pick, positions)


def _of_each_axis(value, axes):
    values = [value] if isinstance(value, int) else list(value)
    return values * axes if len(values) == 1 else values
