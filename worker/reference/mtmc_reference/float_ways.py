# SPDX-License-Identifier: Apache-2.0
"""Ways to change the elements of an ordinary tensor of floats: neither whole numbers alone
nor infinities.

Each is a function of (tensor, generator, number of the input, bounds of the graph's
operators), changes the tensor in place, and keeps its shape and type.
"""

import math

import torch

from . import special_values

# Standard deviations of the shift: a variance as the difference of two means is then
# off by more than any class above strict allows, one of two passes is not.
_OFFSET = 30.0
# With the square of the shift grows what one pass is off by, and with the shift alone what
# another order of the sums may be: of few elements only a far one tells them apart.
_FAR_OFFSET, _MOST_FAR = 150.0, 1 << 16
# Where a mean is taken off, the first of these at which rounding does not decide: of many elements
# a variance in one pass is nearer than of few, and so are other orders.
_FARTHER_OFFSETS = (1024.0, 300.0, _FAR_OFFSET)
# Before those, of means of many terms, so far over the root of how many on a grid on which no order
# of a sum rounds: its terms are multiples of a number, of which it has 2**24 at most.
_MANY_TERMS, _GRID_OFFSET, _MOST_STEPS = 4096, 1.6e5, 2.0**23
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
# Powers of ten of a few spikes beyond, and of their leader: bounds, fills of masks and what
# whole numbers hold are of any size.
_FAR_DECADES, _LEADER_DECADE = (3.0, 9.0), 10.5
# How much smaller the largest one of the other sign is.
_SECOND = 8.0
_MAX_FAR_SPIKES, _ELEMENTS_PER_FAR_SPIKE = 16, 1024
# Part of a ramp that is as drawn: without it, products would have rank 2.
_DRAWN_RATIO = 0.2


def _in_32_bits(tensor):
    """In the type for statistics of 16-bit values; doubles stay."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def stay(*_):
    """As it was, or for what something else changes."""


def times(factor):
    return lambda tensor, *_: tensor.mul_(factor)


def negate_far(tensor, *_):
    """All of it far below zero, where exponentials are small, with the other sign."""
    values = _in_32_bits(tensor)
    size = values.square().mean().sqrt()
    far = torch.minimum(_FAR_BELOW * size, _MOST_BELOW * deviation(tensor))
    tensor.add_(far.to(tensor.dtype)).neg_()


def center_or_shift(tensor, *_):
    """Without the mean; what had none is shifted up as a whole instead."""
    mean, spread = tensor.mean(dtype=torch.float64), deviation(tensor)
    if mean.abs() < _NEARLY * spread:
        tensor.add_((_ABOVE * spread).to(tensor.dtype))
    else:
        special_values.center(tensor)


def deviation(tensor):
    """That of the elements, of a single one its size."""
    values = _in_32_bits(tensor)
    return values.std() if values.numel() > 1 else values.abs().max()


def shift_far(tensor, *_):
    """By the same power of two for inputs of about the same deviation, which stay near each
    other. Not where 16 bits would hold little else, nor where a sum of all elements, one after
    another, would round each of them to the same side."""
    is_far = tensor.element_size() > 2 and tensor.numel() <= _MOST_FAR
    _shift_by_power(tensor, _FAR_OFFSET if is_far else _OFFSET)


def _shift_by_power(tensor, factor):
    step = torch.exp2(deviation(tensor).log2().round())
    tensor.add_((factor * step).to(tensor.dtype))


def shifts_before_means(terms):
    """Ways to move a tensor by as many deviations as an honest mean of so many terms bears, the
    farthest first."""
    far = tuple(
        lambda tensor, *_, factor=factor: _shift_by_power(tensor, factor)
        for factor in _FARTHER_OFFSETS
    )
    if terms <= _MANY_TERMS:
        return far
    return (lambda tensor, generator, *_: _shift_on_grid(tensor, generator, terms), *far)


def _shift_on_grid(tensor, generator, terms):
    """Most elements are one multiple of a power of two, others one beside it, so many that it is
    as many deviations."""
    offset = math.floor(_MOST_STEPS / terms)
    share = min((offset * math.sqrt(terms) / _GRID_OFFSET) ** 2, 1.0)
    values, size = _in_32_bits(tensor), deviation(tensor)
    if not size > 0:
        return
    is_beside = torch.rand(tensor.shape, generator=generator, device=tensor.device) < share
    sides = torch.where(is_beside, torch.sign(values - values.mean()), 0.0)
    step = torch.exp2((size / math.sqrt(share)).log2().round())
    tensor.copy_(sides.add_(offset).mul_(step))


def shift(tensor, *_):
    tensor.add_((_OFFSET * deviation(tensor)).to(tensor.dtype))


def shift_to_one(tensor, *_):
    """A mean of 1, as many deviations off 0: products of many elements stay in range."""
    values = _in_32_bits(tensor)
    mean = values.mean()
    spread = values.std() if values.numel() > 1 else mean.abs()
    scale = 1.0 / (_OFFSET * spread).clamp_(min=torch.finfo(torch.float32).tiny)
    tensor.sub_(mean.to(tensor.dtype)).mul_(scale.to(tensor.dtype)).add_(1.0)


def spike_over_decades(tensor, generator, number, *_):
    """A few elements of any power of ten of `_FAR_DECADES` and one that outweighs them, beside
    the usual spikes and large first rows; where there are both signs, another far one has the
    other: what saturates does so at either end."""
    special_values.enlarge_first_rows(tensor, generator)
    spike(tensor, generator, number)
    places = _some_places(tensor, generator, _ELEMENTS_PER_FAR_SPIKE, _MAX_FAR_SPIKES)
    low, high = _FAR_DECADES
    powers = torch.rand(places.shape, generator=generator, device=places.device)
    sizes = torch.pow(10.0, powers.mul_(high - low).add_(low))
    sizes[0] = 10.0**_LEADER_DECADE * _LEADER_GROWTH ** min(number, _MAX_GROWTHS)
    is_negative = tensor.view(-1)[places] < 0
    if len(places) > 1 and _has_both_signs(tensor):
        sizes[1] = sizes[0] / _SECOND
        is_negative[1] = ~is_negative[0]
    _set_spikes(tensor, places, torch.where(is_negative, -sizes, sizes))


def _has_both_signs(tensor):
    low, high = tensor.aminmax()
    return bool((low < 0) & (high > 0))


def spike(tensor, generator, number, *_):
    size = tensor.numel() / _ELEMENTS_PER_SPIKE_SIZE
    leader = _LEADER * _LEADER_GROWTH ** min(number, _MAX_GROWTHS)
    _scale_some(tensor, generator, min(max(size, _MIN_SPIKE), _MAX_SPIKE), leader)


def spike_mildly(tensor, generator, *_):
    _scale_some(tensor, generator, _MILD_SPIKE, leader=1.0)


def _scale_some(tensor, generator, size, leader):
    places = _some_places(tensor, generator, _ELEMENTS_PER_SPIKE, _MAX_SPIKES)
    sizes = torch.rand(places.shape, generator=generator, device=places.device)
    spikes = _in_32_bits(tensor.view(-1)[places]).mul_(sizes.add_(0.5).mul_(size))
    spikes[spikes.abs().argmax()] *= leader
    _set_spikes(tensor, places, spikes)


def _some_places(tensor, generator, spacing, most):
    """One of so many elements, `most` at most. Each once: what an element becomes must not
    depend on an order."""
    count = min(max(tensor.numel() // spacing, 1), most)
    places = torch.randint(tensor.numel(), (count,), generator=generator, device=tensor.device)
    return torch.unique(places)


def _set_spikes(tensor, places, spikes):
    largest = torch.finfo(tensor.dtype).max / 16
    tensor.view(-1)[places] = spikes.to(tensor.dtype).clamp_(-largest, largest)


def ramp(tensor, *_):
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
        slope = torch.linspace(0, (1 - _DRAWN_RATIO) * weight / total, extent, device=tensor.device)
        slope = slope.to(tensor.dtype) * height + (low if axis == axes[-1] else 0)
        shape = [1] * tensor.dim()
        shape[axis] = extent
        torch.add(slope.view(shape), tensor, alpha=ratio, out=tensor)
        ratio = 1.0


minute, small, wide = times(_MINUTE), times(_SMALL), times(_WIDE)
# No workload where the reference answers nothing but zeros or rounding (`steadiness`), and
# none for FP16, which has no such numbers.
DELICATE = (
    minute,
    small,
    negate_far,
    shift_far,
    spike_over_decades,
    center_or_shift,
)
