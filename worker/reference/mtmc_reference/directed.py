# SPDX-License-Identifier: Apache-2.0
"""Inputs on which values between operators are where public inputs never take them.

What a program assumes in the middle of a model, such as a range, a guard or a bound, stands
behind products, norms and other operators, where no change of the inputs by themselves may
reach it. So each row of the inputs is given a target: a place for one element of one
intermediate value, beyond where it was, at zero or next to it. Newton's method goes there along
the gradient, as far as the reference is finite. A row in which rounding would decide the answer,
or that gets nowhere, stays as it was drawn.

A row is what the first axes of an input name. Where the first axes of an intermediate value are
as many elements, those belong to the rows in turn; where no value has such axes, all rows go for
one element.
"""

import dataclasses
import itertools
import math
import operator
import time

import torch
from torch.overrides import TorchFunctionMode

from .failure import Dropped, ProblemFailure, is_out_of_memory
from .rounding import Disturbed, unit_of
from .steadiness import FACTOR, MOST_OF_ROW
from .workload import total_bytes

# What a search may take; no second pass where the first took so long.
_SECONDS, _FIRST_SECONDS = 2.0, 0.5
_STEPS = 8
# How often targets are drawn until one is come nearer to, and elements until the inputs move them.
_TRIES, _REDRAWS = 4, 2
# Bytes of inputs above which nothing is searched.
_MOST_BYTES = 64 << 20
# Intermediate values that are looked at, and those that get targets.
_MOST_VALUES, _MOST_TARGETED = 4096, 24
# Standard deviations by which an element of an input moves in one step, boldly or mildly.
_CAPS = (8.0, 0.5)
# Of those, how much shorter the next step is after one that got nowhere.
_SHORTER = 4.0
# How far beyond its range a value is to go, in parts of the range, boldly or mildly.
_BEYOND = ((0.25, 1.0, 4.0, 15.0, 60.0), (0.1, 0.25))
# Where a value is to go: beyond its range, to zero, or next to it.
_KINDS = ("above", "zero", "below", "near zero")
# Powers of ten, in parts of the root mean square, of what is next to zero.
_NEAR_ZERO = (-6.0, -1.0)


class Director:
    """Finds directed inputs of one model.

    `run(inputs, observer, state, has_gradients)` runs it in strict FP32 and gives its outputs.
    """

    def __init__(self, run):
        self._run = run

    def move(self, inputs, indices, level, seed, state=None):
        """Moves those of the `inputs` with `indices`, dense floats, in place; at `level` 1 by
        less than at 0. Raises Dropped where no row gets anywhere."""
        if total_bytes(inputs) > _MOST_BYTES:
            raise Dropped("the inputs are too large to search for others")
        try:
            _Search(self._run, inputs, indices, level, seed, state).find()
        except ProblemFailure as failure:
            raise Dropped(failure.message) from failure
        except (RuntimeError, TypeError, NotImplementedError) as error:
            # What changes in place may be what a gradient needs.
            what = "no memory for gradients" if is_out_of_memory(error) else "no gradients"
            raise Dropped(f"{what} of the model") from error


@dataclasses.dataclass
class _Value:
    """What public-like inputs make of an intermediate value; `place` is its number in the run."""

    place: int
    shape: tuple
    low: float
    high: float
    size: float


@dataclasses.dataclass
class _Target:
    """Where elements of a value are to go: of each of the `rows` one, or one of all where these
    are None."""

    value: _Value
    rows: torch.Tensor
    elements: torch.Tensor
    goals: torch.Tensor


class _Search:
    def __init__(self, run, inputs, indices, level, seed, state):
        self._run, self._state, self._level = run, state, level
        self._inputs = inputs
        self._chance = torch.Generator().manual_seed(seed % 2**63)
        self._deadline = time.monotonic() + _SECONDS
        first = inputs[indices[0]]
        self._device = first.device
        # Rows are along all but the last axis, or along the first one.
        is_deep = first.dim() > 2 and self._draw(2)
        self._count = math.prod(first.shape[: first.dim() - 1 if is_deep else 1])
        self._moved = [i for i in indices if first.dim() and self._has_rows(inputs[i].shape)]
        self._scales = [_deviation(inputs[i]) for i in self._moved]

    def find(self):
        """Moves the inputs."""
        if not self._moved:
            raise Dropped("single numbers have no rows")
        base = [self._inputs[i].clone() for i in self._moved]
        start = time.monotonic()
        values = self._values()
        if time.monotonic() - start > _FIRST_SECONDS:
            raise Dropped("the model takes too long to search for inputs")
        first = self._draw(len(_KINDS))
        for attempt in range(_TRIES):
            targets = self._draw_targets(values, _KINDS[(first + attempt) % len(_KINDS)])
            for _ in range(_REDRAWS):
                self._redraw_still(targets)
            self._approach(targets)
            self._place(base, ~self._are_steady(base))
            if not all(torch.equal(x, self._inputs[i]) for x, i in zip(base, self._moved)):
                return
        raise Dropped("no value between operators can be moved")

    def _has_rows(self, shape):
        return self._count in itertools.accumulate(shape, operator.mul)

    def _draw(self, count):
        return int(torch.randint(count, (), generator=self._chance))

    def _place(self, tensors, rows):
        """Gives those of the `rows` the elements that they have in `tensors`."""
        for tensor, i in zip(tensors, self._moved):
            lines = _flat(self._count)(self._inputs[i])
            lines.copy_(torch.where(rows[:, None], _flat(self._count)(tensor), lines))

    # Targets.

    def _values(self):
        """Values that depend on the inputs smoothly, and have rows if any of them has."""
        found = []

        def look(values, _):
            for place, value in values.items():
                value = value.detach()
                low, high = value.aminmax()
                size = value.double().square().mean().sqrt()
                found.append(_Value(place, tuple(value.shape), *map(float, (low, high, size))))

        self._pass(_Observer(look))
        found = [value for value in found if math.isfinite(value.low + value.high)]
        in_rows = [value for value in found if self._has_rows(value.shape)]
        if not found:
            raise Dropped("no value between operators follows the inputs")
        return in_rows or found

    def _draw_targets(self, values, kind):
        """`kind` is that of the goal where there is one for all rows: a value may be steady beyond
        its range alone."""
        order = torch.randperm(len(values), generator=self._chance)[:_MOST_TARGETED]
        chosen = [values[int(place)] for place in order]
        if not self._has_rows(chosen[0].shape):
            element = self._draw(math.prod(chosen[0].shape))
            goals = self._goals(chosen[0], [kind])
            return [_Target(chosen[0], None, torch.tensor([element]), goals)]
        targets = []
        rows = torch.randperm(self._count, generator=self._chance)
        for part, value in zip(rows.tensor_split(len(chosen)), chosen):
            extent = math.prod(value.shape) // self._count
            if len(part):
                elements = torch.randint(extent, part.shape, generator=self._chance)
                kinds = [_KINDS[self._draw(len(_KINDS))] for _ in part]
                targets.append(_Target(value, part, elements, self._goals(value, kinds)))
        return targets

    def _redraw_still(self, targets):
        """Gives rows whose element no input of theirs moves, as behind a ReLU, another one."""
        _, slopes, _ = self._look(targets)
        is_still = torch.stack([slope.eq(0).all(1) for slope in slopes]).all(0).cpu()
        for target in targets:
            extent = math.prod(target.value.shape)
            others = torch.randint(extent, target.elements.shape, generator=self._chance)
            if target.rows is None:
                target.elements = others if is_still.all() else target.elements
            else:
                others %= extent // self._count
                target.elements = torch.where(is_still[target.rows], others, target.elements)

    def _goals(self, value, kinds):
        goals = torch.tensor([self._goal(value, kind) for kind in kinds], dtype=torch.float64)
        return goals.to(self._device)

    def _goal(self, value, kind):
        if kind in ("above", "below"):
            span = (value.high - value.low) or abs(value.high) or 1.0
            beyond = _BEYOND[self._level]
            away = beyond[self._draw(len(beyond))] * span
            return value.low - away if kind == "below" else value.high + away
        if kind == "zero":
            return 0.0
        low, high = _NEAR_ZERO
        power = low + (high - low) * float(torch.rand((), generator=self._chance))
        return (1 - 2 * self._draw(2)) * value.size * 10.0**power

    # Steps.

    def _approach(self, targets):
        """Each row goes on from its best place, by shorter steps once one got nowhere."""
        count = self._count
        least = torch.full((count,), math.inf, dtype=torch.float64, device=self._device)
        caps = torch.full_like(least, _CAPS[self._level])
        best = [self._inputs[i].clone() for i in self._moved]
        slopes = [torch.zeros(count, x[0].numel(), device=x.device) for x in map(_flat(count), best)]
        away = torch.zeros_like(least)
        for step in range(_STEPS + 1):
            ahead, found, is_finite = self._look(targets)
            is_better = is_finite & (ahead.abs() < least)
            least, away = (torch.where(is_better, x, y) for x, y in ((ahead.abs(), least), (ahead, away)))
            slopes = [torch.where(is_better[:, None], g, s) for g, s in zip(found, slopes)]
            self._place(best, ~is_better)
            best = [self._inputs[i].clone() for i in self._moved]
            caps = torch.where(is_better, caps, caps / _SHORTER)
            if step == _STEPS or time.monotonic() > self._deadline:
                return
            self._step(slopes, away, caps)

    def _step(self, slopes, away, caps):
        """A step of Newton's method for each row, in units of each input's deviation."""
        scaled = [scale * slope.double() for scale, slope in zip(self._scales, slopes)]
        steepness = sum(slope.square().sum(1) for slope in scaled)
        largest = torch.stack([slope.abs().amax(1) for slope in scaled]).amax(0)
        length = -away / steepness
        most = caps / largest
        length = torch.nan_to_num(torch.minimum(length.abs(), most) * length.sign(), posinf=0, neginf=0)
        for slope, scale, i in zip(scaled, self._scales, self._moved):
            tensor = self._inputs[i]
            tensor.add_((length[:, None] * scale * slope).view(tensor.shape).to(tensor.dtype))

    def _look(self, targets):
        """By row: how far it is from its target, the slopes of that by input, and whether it is
        finite."""
        away = torch.zeros(self._count, dtype=torch.float64, device=self._device)
        slopes = []

        def look(values, leaves):
            total = 0.0
            for target in targets:
                value = values[target.value.place]
                if target.rows is None:
                    taken = value.reshape(-1)[target.elements.to(self._device)]
                    away.copy_((taken.detach().double() - target.goals).expand(self._count))
                else:
                    rows = target.rows.to(self._device)
                    taken = value.reshape(self._count, -1)[rows, target.elements.to(self._device)]
                    away[rows] = taken.detach().double() - target.goals
                total = total + taken.sum()
            slopes.extend(torch.autograd.grad(total, leaves, allow_unused=True))

        outputs = self._pass(_Observer(look, {target.value.place for target in targets}))
        slopes = [
            torch.zeros_like(self._inputs[i]) if slope is None else slope
            for slope, i in zip(slopes, self._moved)
        ]
        slopes = [torch.nan_to_num(_flat(self._count)(slope).float()) for slope in slopes]
        return away, slopes, away.isfinite() & self._are_finite(outputs)

    def _pass(self, observer):
        """Outputs of a run with gradients on the inputs as they are."""
        fed = list(self._inputs)
        with torch.enable_grad():
            observer.leaves = [self._inputs[i].clone().requires_grad_() for i in self._moved]
            for leaf, i in zip(observer.leaves, self._moved):
                # What runs may change its inputs, but no leaf.
                fed[i] = leaf.clone()
        return self._run(fed, observer, self._state, True)

    def _are_finite(self, outputs):
        is_finite = torch.ones(self._count, dtype=torch.bool, device=self._device)
        for y in outputs:
            if y.is_floating_point() and y.numel():
                each = self._by_row(y.isfinite())
                is_finite &= y.isfinite().all() if each is None else each.all(1)
        return is_finite

    def _by_row(self, tensor):
        """A line for each row; None where a tensor has no rows."""
        return _flat(self._count)(tensor) if self._has_rows(tensor.shape) else None

    # Rounding.

    def _are_steady(self, base):
        """By row, whether rounding does little more to the outputs than at the `base`."""
        moved = [self._inputs[i].clone() for i in self._moved]
        there = self._roundings()
        everywhere = torch.ones(self._count, dtype=torch.bool, device=self._device)
        self._place(base, everywhere)
        usual = self._roundings()
        self._place(moved, everywhere)
        is_steady = everywhere
        for part, before in zip(there, usual):
            # A row may have had nothing to round.
            most = (FACTOR * before.median()).clamp(min=MOST_OF_ROW)
            is_steady = is_steady & (part <= most)
        return is_steady

    def _roundings(self):
        """By output and row, how much of it rounding changes."""
        outputs = self._run(list(self._inputs), None, self._state, False)
        floats = [i for i, y in enumerate(outputs) if y.is_floating_point() and y.numel()]
        unit = max((unit_of(outputs[i].dtype) for i in floats), default=0.0)
        disturbed = self._run(list(self._inputs), Disturbed(unit), self._state, False)
        found = []
        for i in floats:
            line = self._by_row(outputs[i])
            other = self._by_row(disturbed[i])
            if line is None:
                line, other = (y.reshape(1, -1) for y in (outputs[i], disturbed[i]))
            change = torch.linalg.vector_norm(other.double() - line.double(), dim=1)
            part = change / torch.linalg.vector_norm(line.double(), dim=1).clamp(min=1e-30)
            found.append(torch.nan_to_num(part, nan=math.inf).expand(self._count))
        return found


class _Observer(TorchFunctionMode):
    """Within it, floating-point results that follow the inputs are kept by their number, all or
    those `wanted`; at its end `look(values, leaves)` is called, while the model still has the
    state of the run."""

    def __init__(self, look, wanted=None):
        super().__init__()
        self._look, self._wanted = look, wanted
        self._values, self._number = {}, 0
        self._storages = set()
        self.leaves = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for result in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(result, torch.Tensor) and result.is_floating_point():
                self._note(result)
        return out

    def _note(self, result):
        self._number += 1
        if self._wanted is not None:
            if self._number in self._wanted:
                self._values[self._number] = result
        elif result.requires_grad and result.numel() and len(self._values) < _MOST_VALUES:
            # What only moves elements shares them.
            storage = result.untyped_storage().data_ptr()
            if storage not in self._storages:
                self._storages.add(storage)
                self._values[self._number] = result

    def __exit__(self, kind, value, trace):
        super().__exit__(kind, value, trace)
        values, self._values = self._values, {}
        if kind is None:
            self._look(values, self.leaves)


def _flat(count):
    return lambda tensor: tensor.reshape(count, -1)


def _deviation(tensor):
    values = tensor.double()
    found = float(values.std(correction=0)) or float(values.abs().max())
    return found if math.isfinite(found) and found else 1.0
