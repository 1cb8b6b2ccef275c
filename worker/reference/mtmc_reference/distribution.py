# SPDX-License-Identifier: Apache-2.0
"""What the inputs of a hidden workload look like: `mtmc.v1.Distribution`.

Each is made from what `get_inputs` draws. Shapes and types stay. A distribution changes
each input that it can in some ways, the mildest last: where the reference fails or is not
finite, a milder way is tried, and at last the input stays as it was drawn. A distribution
that changes no input any more is dropped by name.
"""

import torch

from . import redraw, special_values
from .graph_domain import Uses

NONE = "DISTRIBUTION_UNSPECIFIED"
REDRAWN = "DISTRIBUTION_REDRAWN"
EXTREMES = "DISTRIBUTION_EXTREMES"
SPECIAL_ROWS = "DISTRIBUTION_SPECIAL_ROWS"
CENTERED = "DISTRIBUTION_CENTERED"
ROUNDED = "DISTRIBUTION_ROUNDED"
TIMES_3 = "DISTRIBUTION_TIMES_3"
PARAMETERS_ZERO = "DISTRIBUTION_PARAMETERS_ZERO"
PARAMETERS_ONE = "DISTRIBUTION_PARAMETERS_ONE"
NONFINITE = "DISTRIBUTION_NONFINITE"
# In the order of the enumeration: its numbers are part of the seeds.
DISTRIBUTIONS = (
    TIMES_3,
    "DISTRIBUTION_TIMES_001",
    "DISTRIBUTION_NEGATED",
    "DISTRIBUTION_OFFSET",
    "DISTRIBUTION_HEAVY_TAILED",
    "DISTRIBUTION_RAMPS",
    REDRAWN,
    EXTREMES,
    SPECIAL_ROWS,
    CENTERED,
    ROUNDED,
    "DISTRIBUTION_RANGE_ENDS",
    PARAMETERS_ZERO,
    PARAMETERS_ONE,
    NONFINITE,
)
# Those whose inputs are as `get_inputs` draws them.
OF_PARAMETERS = (PARAMETERS_ZERO, PARAMETERS_ONE)
# Those whose equal elements may have a variance of zero, by which a model divides.
LEVEL = (SPECIAL_ROWS, *OF_PARAMETERS)
# Those that have delicate ways, after which outputs are small or what cancels is large.
DELICATE = ("DISTRIBUTION_TIMES_001", "DISTRIBUTION_NEGATED", "DISTRIBUTION_OFFSET", CENTERED)
# Those on which constant or undefined outputs say nothing about the problem.
UNTYPICAL = (*OF_PARAMETERS, NONFINITE)
# Those that stay inside the range of what was drawn, as far as an element shows.
WITHIN_RANGE = (NONE, "DISTRIBUTION_RAMPS", REDRAWN)
# Standard deviations of the shift: a variance as the difference of two means is then
# off by more than any class above strict allows, one of two passes is not.
_OFFSET = 30.0
# With the square of the shift grows what one pass is off by, and with the shift alone what
# another order of the sums may be: of few elements only a far one tells them apart.
_FAR_OFFSET, _MOST_FAR = 150.0, 1 << 16
# Powers of two, exact: what is added to 1 is lost. Squares are 0 in FP32, with the other
# sign besides, or in range.
_MINUTE, _SMALL = -(2.0**-84), 2.0**-40
# So many root mean squares below zero, and deviations at most, exp(x) is lost beside 1.
_FAR_BELOW, _MOST_BELOW = 20.0, 60.0
# Deviations above zero, where erfc has its tail, of what has a mean of nearly zero.
_ABOVE, _NEARLY = 7.0, 0.2
# Wide enough for exponentials and their kin to reach the ends of their range.
_WIDE = 25.0
# A spike is this much larger than its element, more in a large tensor, where a
# mean must still feel it; far enough for exp to overflow where a maximum is not
# taken off first.
_MIN_SPIKE, _MAX_SPIKE, _MILD_SPIKE = 300.0, 1e6, 20.0
_ELEMENTS_PER_SPIKE_SIZE = 1e4
_MAX_SPIKES = 64
_ELEMENTS_PER_SPIKE = 256
# One spike outweighs the others together: whoever looks at a part of the elements, and
# takes it for the whole, either has it or has not.
_LEADER = 32.0
# It grows from input to input, so that those of two never balance.
_LEADER_GROWTH, _MAX_GROWTHS = 4.0, 3
# Elements that are kept of a tensor of floats, and by which two draws are told apart.
_MOST_EXAMPLES, _SAMPLE = 1 << 20, 1 << 16
# Part of a ramp that is as drawn: without it, products would have rank 2.
_DRAWN_RATIO = 0.2


class Changer:
    """Knows how each distribution changes each input of one problem.

    `draws` are inputs from some draws of `get_inputs`, the first the public one; `uses` what
    the graph says of each position, `fixed` the positions that nobody may change, `bounds`
    numbers at which an operator changes its mind, `landmarks` by position where that is.
    `may_be_small` tells that no honest program computes in a type as narrow as FP16.
    """

    def __init__(
        self, draws, uses=None, fixed=(), bounds=(), landmarks=None, *, may_be_small=True
    ):
        public = draws[0]
        self._may_be_small = may_be_small
        uses = uses or {}
        self._bounds = bounds
        self._landmarks = landmarks or {}
        self._uses = {index: uses.get(index, Uses()) for index in range(len(public))}
        self._labels = []
        # Ways to change an input by distribution and position.
        self._ways = {name: {} for name in DISTRIBUTIONS}
        # How many of those are delicate, the first ones.
        self._delicate = {}
        self.varies = {}
        for index, value in enumerate(public):
            if index in fixed or not isinstance(value, torch.Tensor) or not value.numel():
                continue
            seen = [inputs[index] for inputs in draws]
            first, *others = [_sample(example(x), _SAMPLE) for x in seen]
            self.varies[index] = any(not torch.equal(first, other) for other in others)
            if _is_free(value):
                self._note_ordinary(index, value, seen)
            else:
                self._note_other(index, value, redraw.domain_of(seen, self._uses[index]))

    def ways(self, name):
        """Number of ways to change each input under a distribution, by position."""
        return {index: len(ways) for index, ways in self._ways.get(name, {}).items()}

    def is_delicate(self, name, levels):
        """Whether an input is changed in a way after which outputs may be nothing."""
        return any(level < self._delicate.get((name, i), 0) for i, level in levels.items())

    def changes(self, index):
        """Names of the distributions that can change an input."""
        return [name for name, ways in self._ways.items() if index in ways]

    def apply(self, name, inputs, levels, seed):
        """Changes `inputs` under distribution `name`, in place.

        REQUIRES: the tensors are dense. Those in `levels` change, each in the way of that
        number; `seed` decides what is random.
        """
        changed = set()
        for index, level in levels.items():
            tensor, ways = inputs[index], self._ways[name][index]
            # The same tensor twice changes once.
            if tensor.data_ptr() not in changed:
                changed.add(tensor.data_ptr())
                generator = torch.Generator(tensor.device).manual_seed((seed + index) % 2**63)
                ways[level](tensor, generator, number=len(changed) - 1)
        if name == "DISTRIBUTION_RAMPS":
            _sort_labels(inputs, self._labels)
        for index in levels:
            if self._uses[index].is_ordered and inputs[index].is_floating_point():
                inputs[index].copy_(inputs[index].sort().values)
        return inputs

    def refusal(self, inputs, levels):
        """Why the reference must not be asked about inputs; None if it may be."""
        for index in levels:
            if self._uses[index].is_probability:
                low, high = inputs[index].aminmax()
                # A NaN is not between them either.
                if not (low >= 0 and high <= 1):
                    return f"all elements of input {index} should be between 0 and 1"
        return None

    def _note_ordinary(self, index, value, seen):
        may_be_small = self._may_be_small and value.dtype != torch.float16
        for name, ways in _CHANGES.items():
            delicate = [way for way in ways if way in _DELICATE_WAYS]
            ways = ways if may_be_small else ways[len(delicate) :]
            self._delicate[name, index] = len(delicate) if may_be_small else 0
            ways = with_landmarks(name, ways, self._landmarks.get(index, ()))
            self._ways[name][index] = [_ordinary(way, self._bounds) for way in ways]
        if is_constant(value) and not self.varies[index]:
            domain = redraw.domain_of(seen, self._uses[index])
            self._note(EXTREMES, index, redraw.extreme_ways(value, domain))

    def _note_other(self, index, value, domain):
        self._note(REDRAWN, index, redraw.redrawn_ways(value, domain))
        self._note(EXTREMES, index, redraw.extreme_ways(value, domain))
        self._note(CENTERED, index, redraw.signed_ways(value, domain))
        if value.dtype == torch.bool:
            self._note(SPECIAL_ROWS, index, [redraw.make_first_row_true])
        if value.is_floating_point():
            if not self._uses[index].is_restricted:
                self._ways[NONFINITE][index] = [
                    _ordinary(special_values.make_nonfinite, self._bounds)
                ]
            if value.dim() == 1:
                self._labels.append(index)

    def _note(self, name, index, ways):
        if ways:
            self._ways[name][index] = [_other(way) for way in ways]


def leaves_range(tensor, public):
    """Whether floats lie outside of the range of the public ones."""
    if not tensor.is_floating_point() or not tensor.numel():
        return False
    low, high = special_values.natural_range(public)
    least, most = (end.item() for end in tensor.aminmax())
    return not low <= least <= most <= high


def example(value):
    """What a Changer needs of a draw beside the public one: of a large tensor of floats, some
    elements from all over it."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    # A view would keep all of it.
    return _sample(value, _MOST_EXAMPLES).clone()


def _sample(tensor, most):
    flat = tensor.reshape(-1)
    return flat[:: -(-flat.numel() // most) or 1]


def _ordinary(way, bounds):
    def change(tensor, generator, number):
        way(tensor, generator, number, bounds)

    return change


def _other(way):
    return lambda tensor, generator, number: redraw.changed(way, tensor, generator)


def with_landmarks(name, ways, landmarks):
    """The ways of a distribution, before the milder ones those that meet `landmarks`."""
    waves = [mark for mark in landmarks if mark.period]
    marks = [mark for mark in landmarks if not mark.period]
    if name == ROUNDED and marks:
        both = special_values.at_landmarks(marks, is_one_sided=False)
        return (both, special_values.at_landmarks(marks, is_one_sided=True), *ways)
    if name == TIMES_3 and waves:
        return (ways[0], special_values.by_periods(waves), *ways[1:])
    return ways


def is_constant(tensor):
    """Whether all elements are equal."""
    low, high = tensor.aminmax()
    return bool(low == high)


def _is_free(value):
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not value.numel():
        return False
    # The first elements tell nearly always, at no cost.
    if _is_whole(value.reshape(-1)[:4096]) and _is_whole(value):
        return False
    return bool(torch.isfinite(value.sum(dtype=torch.float64)))


def _is_whole(tensor):
    return bool((tensor == tensor.round()).all())


def _wide(tensor):
    """In the type for statistics of 16-bit values; doubles stay."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _times(factor):
    return lambda tensor, *_: tensor.mul_(factor)


def _negate_far(tensor, *_):
    """All of it far below zero, where exponentials are small, with the other sign."""
    wide = _wide(tensor)
    size = wide.square().mean().sqrt()
    far = torch.minimum(_FAR_BELOW * size, _MOST_BELOW * _deviation(tensor))
    tensor.add_(far.to(tensor.dtype)).neg_()


def _center_or_shift(tensor, *_):
    """Without the mean; what had none is shifted up as a whole instead."""
    mean, deviation = tensor.mean(dtype=torch.float64), _deviation(tensor)
    if mean.abs() < _NEARLY * deviation:
        tensor.add_((_ABOVE * deviation).to(tensor.dtype))
    else:
        special_values.center(tensor)


def _deviation(tensor):
    wide = _wide(tensor)
    return wide.std() if wide.numel() > 1 else wide.abs().max()


def _shift_far(tensor, *_):
    """By the same power of two for inputs of about the same deviation, which stay near each
    other. Not where 16 bits would hold little else, nor where a sum of all elements, one after
    another, would round each of them to the same side."""
    step = torch.exp2(_deviation(tensor).log2().round())
    is_far = tensor.element_size() > 2 and tensor.numel() <= _MOST_FAR
    factor = _FAR_OFFSET if is_far else _OFFSET
    tensor.add_((factor * step).to(tensor.dtype))


def _shift(tensor, *_):
    tensor.add_((_OFFSET * _deviation(tensor)).to(tensor.dtype))


def _shift_to_one(tensor, *_):
    """A mean of 1, as many deviations off 0: products of many elements stay in range."""
    wide = _wide(tensor)
    mean = wide.mean()
    deviation = wide.std() if wide.numel() > 1 else mean.abs()
    scale = 1.0 / (_OFFSET * deviation).clamp_(min=torch.finfo(torch.float32).tiny)
    tensor.sub_(mean.to(tensor.dtype)).mul_(scale.to(tensor.dtype)).add_(1.0)


def _spike(tensor, generator, number, *_):
    size = tensor.numel() / _ELEMENTS_PER_SPIKE_SIZE
    leader = _LEADER * _LEADER_GROWTH ** min(number, _MAX_GROWTHS)
    _scale_some(tensor, generator, min(max(size, _MIN_SPIKE), _MAX_SPIKE), leader)


def _spike_mildly(tensor, generator, *_):
    _scale_some(tensor, generator, _MILD_SPIKE, leader=1.0)


def _scale_some(tensor, generator, size, leader):
    flat = tensor.view(-1)
    count = min(max(flat.numel() // _ELEMENTS_PER_SPIKE, 1), _MAX_SPIKES)
    # Each place once: what an element becomes must not depend on an order.
    places = torch.randint(flat.numel(), (count,), generator=generator, device=flat.device)
    places = torch.unique(places)
    sizes = torch.rand(places.shape, generator=generator, device=flat.device).add_(0.5).mul_(size)
    spikes = _wide(flat[places]).mul_(sizes)
    spikes[spikes.abs().argmax()] *= leader
    largest = torch.finfo(tensor.dtype).max / 16
    flat[places] = spikes.clamp_(-largest, largest).to(tensor.dtype)


def _ramp(tensor, *_):
    """Along every axis with another slope, within the range of what was drawn."""
    low, high = tensor.aminmax()
    height = high - low
    axes = [axis for axis, extent in enumerate(tensor.shape) if extent > 1]
    if not axes:
        return
    tensor.sub_(low)
    total = sum(range(1, len(axes) + 1))
    # One pass for each axis: the first also scales what was drawn, the last adds `low`.
    ratio = _DRAWN_RATIO
    for weight, axis in enumerate(axes, start=1):
        extent = tensor.shape[axis]
        ramp = torch.linspace(0, (1 - _DRAWN_RATIO) * weight / total, extent, device=tensor.device)
        ramp = ramp.to(tensor.dtype) * height + (low if axis == axes[-1] else 0)
        shape = [1] * tensor.dim()
        shape[axis] = extent
        torch.add(ramp.view(shape), tensor, alpha=ratio, out=tensor)
        ratio = 1.0


def _sort_labels(inputs, labels):
    """Puts whole-numbered vectors in order: labels then go with the ramp, not against chance."""
    for index in labels:
        inputs[index].copy_(inputs[index].sort().values)


_MINUTE_WAY, _SMALL_WAY = _times(_MINUTE), _times(_SMALL)
# No workload where the reference answers nothing but zeros or rounding (`steadiness`), and
# none for FP16, which has no such numbers.
_DELICATE_WAYS = (_MINUTE_WAY, _SMALL_WAY, _negate_far, _shift_far, _center_or_shift)
_CHANGES = {
    TIMES_3: (_times(_WIDE), _times(3.0)),
    "DISTRIBUTION_TIMES_001": (_MINUTE_WAY, _SMALL_WAY, _times(0.01)),
    "DISTRIBUTION_NEGATED": (_negate_far, _times(-1.0)),
    "DISTRIBUTION_OFFSET": (_shift_far, _shift, _shift_to_one),
    "DISTRIBUTION_HEAVY_TAILED": (_spike, _spike_mildly),
    "DISTRIBUTION_RAMPS": (_ramp,),
    SPECIAL_ROWS: (
        special_values.far_rows,
        special_values.special_rows,
        special_values.tied_rows,
        special_values.ordered_rows,
    ),
    CENTERED: (_center_or_shift, special_values.center),
    ROUNDED: (special_values.round_off, special_values.round_inside),
    "DISTRIBUTION_RANGE_ENDS": (
        special_values.go_to_ends_and_bounds,
        special_values.go_to_ends,
        special_values.go_near_ends,
    ),
    NONFINITE: (special_values.make_nonfinite,),
}
