# SPDX-License-Identifier: Apache-2.0
"""States of a model: its parameters and persistent buffers, as they are and otherwise.

A program must not know the numbers that the constructor drew: a checkpoint brings others.
So each workload has one of few states,

    public   as the constructor made them
    first,   other numbers of the same type, shape, scale, sign and structure; workloads
    second   take them in turn; of the second some elements are far out, as training moves them
    zero     all 0
    one      all 1

A tensor that is not in `state_dict` belongs to the code and stays. So does one that the
user fixes, and at last one under whose other values the reference is not defined.
"""

import contextlib
import math
import time

import torch

from . import distribution, redraw

PUBLIC, FIRST, SECOND, ZERO, ONE = "public", "first", "second", "zero", "one"
ORDINARY = (FIRST, SECOND)

_CHUNK = 1 << 22
# Factor of an element, and of a tensor whose elements keep their places.
_LEAST_FACTOR, _MOST_FACTOR = 0.7, 1.3
_SAMPLE = 4096
# How far out elements are, in the larger of 1 and the largest of the tensor: enough for
# exponentials to overflow, and for most clamps.
_REACHES = (150.0, 12.0)
# Powers of ten to which a positive buffer goes down and up, such as a variance: below what
# guards add to it, and beyond what bounds it.
_POSITIVE_DECADES = (-7.0, 6.0)
# Elements of a tensor of which a quarter are far out, and one of how many of a larger one.
_FEW, _FAR_APART = 256, 64
# How long tensors are looked for that must not be far out, or stay as they are.
_SECONDS, _FAR_SECONDS = 10.0, 1.5


def state_of(key):
    """Name of the state that the workload `key` has."""
    if key.is_public:
        return PUBLIC
    if key.distribution == distribution.PARAMETERS_ZERO:
        return ZERO
    if key.distribution == distribution.PARAMETERS_ONE:
        return ONE
    return ORDINARY[(key.seed_index + key.salt) % 2]


class States:
    """The states of one model.

    `graph` is its traced graph, `uses(name)` what that says of an input, `seed_of(word)` a
    number that nobody knows. Tensors by target are those that the graph takes.
    """

    def __init__(self, model, graph, uses, fixed, seed_of):
        self._seed_of = seed_of
        persistent = model.state_dict(keep_vars=True)
        # Graph name by target, of what a state may change.
        self.names = {}
        self._tensors = {}
        self._uses = {}
        # Ways to draw a tensor, the mildest last, by target: of the first state and the second.
        self._ways = {}
        # Reason by graph name, of what no state changes.
        self.fixed = {}
        # Number of the way in which a tensor is drawn, where it is not the first.
        self._levels = {}
        for entry in graph["inputs"]:
            if entry["kind"] not in ("KIND_PARAMETER", "KIND_BUFFER"):
                continue
            target, name = entry["target"], entry["name"]
            if target not in persistent:
                self.fixed[name] = "not in state_dict"
            elif target in fixed.targets:
                self.fixed[name] = "fixed by the user"
            elif persistent[target].numel():
                self.names[target] = name
                self._tensors[target] = persistent[target]
                self._uses[target] = uses(name)
                self._ways[target] = _ways_of(persistent[target], self._uses[target])
        for target in [target for target, ways in self._ways.items() if not ways]:
            self._keep(target, "an operator may define no other value")

    @property
    def are_there(self):
        """Whether a state changes anything."""
        return bool(self._tensors)

    def tensor(self, target):
        """The model's own tensor; REQUIRES: `target` is in `names`."""
        return self._tensors[target]

    @contextlib.contextmanager
    def applied(self, state):
        """In the block, the model is in that state."""
        if state in (None, PUBLIC) or not self._tensors:
            yield
            return
        # The same elements under two names change once.
        tensors = {tensor.data_ptr(): tensor for tensor in self._tensors.values()}
        saved = [(tensor, tensor.detach().clone()) for tensor in tensors.values()]
        try:
            self._write(state)
            yield
        finally:
            with torch.no_grad():
                for tensor, value in saved:
                    tensor.copy_(value)

    def settle(self, accepts):
        """Finds for each tensor a way to change it that the reference accepts.

        `accepts(state, is_steady)` runs it in a state, and tells where it `is_steady` whether
        rounding decides little there; the last resort is that a tensor stays.
        """
        start = time.monotonic()
        while self._tensors and not self._are_accepted(self._tensors, accepts):
            # Where time is short, all go on together; first those that are far out.
            far = [target for target in self._tensors if self._is_far(target)]
            is_late = time.monotonic() - start > (_FAR_SECONDS if far else _SECONDS)
            for target in (far or list(self._tensors)) if is_late else [self._culprit(accepts)]:
                self._soften(target)

    def _is_far(self, target):
        near, second = self._ways[target][self._levels.get(target, 0)]
        return second is not near

    def _are_accepted(self, targets, accepts):
        """Whether the reference is defined where only these tensors are other ones."""
        everything = self._tensors
        self._tensors = {target: everything[target] for target in targets}
        has_far = any(map(self._is_far, targets))
        try:
            return accepts(FIRST, False) and accepts(SECOND, has_far)
        finally:
            self._tensors = everything

    def _culprit(self, accepts):
        """A tensor that the reference refuses together with those before it, and not these
        alone."""
        targets = list(self._tensors)
        accepted, refused = 0, len(targets)
        while refused - accepted > 1:
            middle = (accepted + refused) // 2
            if self._are_accepted(targets[:middle], accepts):
                accepted = middle
            else:
                refused = middle
        return targets[refused - 1]

    def _soften(self, target):
        level = self._levels.get(target, 0) + 1
        if level < len(self._ways[target]):
            self._levels[target] = level
        else:
            self._keep(target, "the reference is not defined with other values")

    def _keep(self, target, reason):
        del self._tensors[target]
        self.fixed[self.names.pop(target)] = reason

    @torch.no_grad()
    def _write(self, state):
        written = set()
        for target, tensor in self._tensors.items():
            if tensor.data_ptr() in written:
                continue
            written.add(tensor.data_ptr())
            if state in ORDINARY:
                seed = self._seed_of(f"state {state} {target}")
                generator = torch.Generator(tensor.device).manual_seed(seed)
                ways = self._ways[target][self._levels.get(target, 0)]
                redraw.changed(ways[ORDINARY.index(state)], tensor, generator)
            else:
                _fill(tensor, 0 if state == ZERO else 1, self._uses[target])


def exchange(tensor, uses, seed):
    """Other elements of the same kind, in place; false where there are none."""
    ways = _near_ways(tensor, uses)
    if ways:
        generator = torch.Generator(tensor.device).manual_seed(seed)
        redraw.changed(ways[0], tensor, generator)
    return bool(ways)


def _ways_of(tensor, uses):
    """Pairs of ways to change a tensor in place, the mildest last: of the first state, and of
    the second, which are the same at last."""
    near = _near_ways(tensor, uses)
    same = [(way, way) for way in near]
    is_free = not (uses.is_probability or uses.is_ordered or uses.is_restricted or uses.is_written)
    if not is_free or not near or tensor.dtype == torch.bool:
        return same
    if not tensor.is_floating_point():
        # A single one is a counter.
        return [(near[0], _anywhere), *same] if tensor.numel() > 1 else same
    if _is_whole(tensor) and not distribution.is_constant(tensor):
        # A mask stays a mask.
        return same
    far = [_reaching(near[0], reach) for reach in _REACHES]
    if not isinstance(tensor, torch.nn.Parameter) and bool((tensor > 0).all()):
        far.insert(0, _over_decades(near[0]))
    return [*((near[0], way) for way in far), *same]


def _near_ways(tensor, uses):
    """Ways to change a tensor in place, the mildest last: functions of (it, generator)."""
    if tensor.is_floating_point() and uses.is_probability:
        return [_resample, _permute_last]
    if tensor.is_floating_point() and uses.is_ordered:
        return [_scale]
    if tensor.is_floating_point():
        low, high = tensor.detach().aminmax()
        if bool(low == high) and bool(low.isfinite()):
            return [*_signed(tensor, _spread), _spread, _scale]
        if _is_whole(tensor):
            return [_resample, _permute_last, *redraw.move_some_ways()]
        return [*_signed(tensor, _resample_scaled), _resample_scaled, _scale_each, _scale]
    if tensor.dtype == torch.bool:
        is_mixed = bool(tensor.any() and not tensor.all())
        return [_resample, _permute_last, *redraw.move_some_ways()] if is_mixed else [_flip_some]
    if uses.is_ordered:
        return []
    if tensor.numel() > 1 and uses.is_written:
        return [_permute_last]
    if uses.legal and uses.legal[0] < uses.legal[1]:
        return [_between(*uses.legal), *([_resample, _permute_last] if tensor.numel() > 1 else [])]
    if uses.is_restricted or not distribution.is_constant(tensor):
        return [_resample, _permute_last] if tensor.numel() > 1 else []
    return [_count_on] if tensor.numel() == 1 else [_small_numbers, _count_on]


def _is_whole(tensor):
    sample = tensor.detach().reshape(-1)[:_SAMPLE]
    if bool((sample == sample.round()).all()):
        return bool((tensor == tensor.round()).all())
    return not bool(torch.isfinite(tensor).all())


def _uniform(shape, generator, low, high):
    drawn = torch.rand(shape, generator=generator, device=generator.device)
    return drawn.mul_(high - low).add_(low)


def _spread(tensor, generator):
    """Around the one value that all elements have; around 0 within a half."""
    for part in _parts(tensor):
        offset = _uniform(part.shape, generator, -0.5, 0.5)
        part.add_(torch.where(part == 0, offset, offset * part).to(part.dtype))


def _resample(tensor, generator):
    """Its own elements, with repeats, at other places."""
    source = tensor.detach().clone().reshape(-1)
    for part in _parts(tensor):
        places = torch.randint(
            source.numel(), part.shape, generator=generator, device=generator.device
        )
        part.copy_(source[places])


def _resample_scaled(tensor, generator):
    _resample(tensor, generator)
    _scale_each(tensor, generator)


def _signed(tensor, way):
    """The way, after which a quarter of the elements change sign; none for a buffer, such as a
    variance, whose sign is no accident."""

    def change(it, generator):
        way(it, generator)
        _flip_signs(it, generator)

    return [change] if isinstance(tensor, torch.nn.Parameter) else []


def _flip_signs(tensor, generator):
    for part in _parts(tensor):
        kind = _uniform(part.shape, generator, 0.0, 1.0)
        # One in any case: a slope may be the only element.
        kind.view(-1)[0] = 0.0
        part.mul_(torch.where(kind < 0.25, -1.0, 1.0).to(part.dtype))


def _scale_each(tensor, generator):
    for part in _parts(tensor):
        part.mul_(_uniform(part.shape, generator, _LEAST_FACTOR, _MOST_FACTOR).to(part.dtype))


def _scale(tensor, generator):
    factor = _uniform((1,), generator, 1.05, _MOST_FACTOR).item()
    tensor.mul_(factor)


def _permute_last(tensor, generator):
    """Whole slices in another order: rows keep what they have."""
    if tensor.dim() == 0:
        return
    order = torch.randperm(tensor.shape[-1], generator=generator, device=generator.device)
    tensor.copy_(tensor.detach()[..., order])


def _flip_some(tensor, generator):
    for part in _parts(tensor):
        part.logical_xor_(_uniform(part.shape, generator, 0.0, 1.0) < 0.3)


def _count_on(tensor, generator):
    """Another small number, as of a counter."""
    tensor.add_(torch.randint(1, 100, (), generator=generator, device=generator.device))


def _small_numbers(tensor, generator):
    """Each element another number of a byte."""
    ends = torch.iinfo(tensor.dtype)
    _between(max(ends.min, -128), min(ends.max, 127))(tensor, generator)


def _anywhere(tensor, generator):
    """Any number of the type, or of 32 bits where it has more."""
    ends = torch.iinfo(tensor.dtype)
    _between(max(ends.min, -(1 << 31)), min(ends.max, (1 << 31) - 1))(tensor, generator)


def _between(low, high):
    def change(tensor, generator):
        for part in _parts(tensor):
            shape, device = part.shape, generator.device
            part.copy_(torch.randint(low, high + 1, shape, generator=generator, device=device))

    return change


def _reaching(way, reach):
    """The way, after which some elements are up to `reach` times as large as the largest, or
    as 1, by any power of ten between: a slope, a gate, a threshold as training leaves it."""

    def change(tensor, generator):
        largest = max(tensor.detach().abs().max().item(), 1.0)
        first = tensor.detach().reshape(-1)[0].item()
        way(tensor, generator)
        for part, is_far, power in _far_parts(tensor, generator, (1.0,)):
            size = torch.pow(reach, power).mul_(largest).to(part.dtype)
            part.copy_(torch.where(is_far, torch.where(part < 0, -size, size), part))
        # The first state has given a single number its other sign.
        with torch.no_grad():
            flat = tensor.view(-1)[:1] if tensor.is_contiguous() else tensor[:0]
            flat.copy_(flat.abs() if first >= 0 else -flat.abs())

    return change


def _over_decades(way):
    """The way, after which some elements are of any power of ten of `_POSITIVE_DECADES`."""

    def change(tensor, generator):
        way(tensor, generator)
        low, high = _POSITIVE_DECADES
        high = min(high, math.log10(torch.finfo(tensor.dtype).max) - 1)
        # One near either end.
        for part, is_far, power in _far_parts(tensor, generator, (1 / (high - low), 1.0)):
            size = torch.pow(10.0, power.mul_(high - low).add_(low)).to(part.dtype)
            part.copy_(torch.where(is_far, size, part))

    return change


def _far_parts(tensor, generator, ends):
    """(part, which of its elements go far out, how far from 0 to 1 each goes) of all parts. The
    first ones do in any case, of several as far as `ends` say."""
    ratio = 0.25 if tensor.numel() <= _FEW else 1 / _FAR_APART
    for part in _parts(tensor):
        kind = _uniform(part.shape, generator, 0.0, 1.0)
        power = _uniform(part.shape, generator, 0.0, 1.0)
        kind.view(-1)[: len(ends)] = 0.0
        if part.numel() > 1:
            power.view(-1)[: len(ends)] = torch.tensor(ends, device=power.device)
        yield part, kind < ratio, power


def _fill(tensor, value, uses):
    """All elements `value`, or the nearest that an index may be."""
    if not tensor.is_floating_point() and tensor.dtype != torch.bool and uses.is_restricted:
        low, high = (end.item() for end in tensor.aminmax())
        value = min(max(value, low), high)
    tensor.fill_(value)


def _parts(tensor):
    """The tensor's elements in chunks, as views of it; one chunk where it has gaps."""
    if tensor.is_contiguous():
        return tensor.detach().view(-1).split(_CHUNK)
    return [tensor.detach()]
