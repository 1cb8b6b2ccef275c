# SPDX-License-Identifier: Apache-2.0
"""What the inputs of a hidden workload look like: `mtmc.v1.Distribution`.

Each is made from what `get_inputs` draws. Shapes and types stay, and only
floating-point tensors change whose values are free: integers, booleans and
floats that hold whole numbers (labels, masks, one-hot rows) or infinities
(attention masks) are as they were, because a model is not defined elsewhere.
Probabilities may leave [0, 1] and logarithms meet negative numbers; where the
reference is then not finite or fails, a milder form is tried where there is one, and
at last the distribution is dropped by name.
"""

import torch

NONE = "DISTRIBUTION_UNSPECIFIED"
DISTRIBUTIONS = (
    "DISTRIBUTION_TIMES_3",
    "DISTRIBUTION_TIMES_001",
    "DISTRIBUTION_NEGATED",
    "DISTRIBUTION_OFFSET",
    "DISTRIBUTION_HEAVY_TAILED",
    "DISTRIBUTION_RAMPS",
)

# Standard deviations of the shift: a variance as the difference of two means is then
# off by more than any class above strict allows, one of two passes is not.
_OFFSET = 30.0
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
# Part of a ramp that is as drawn: without it, products would have rank 2.
_DRAWN_RATIO = 0.2


def free_inputs(inputs):
    """Positions of the inputs that a distribution may change."""
    return [index for index, value in enumerate(inputs) if _is_free(value)]


def forms(name):
    """Number of forms of a distribution, the mildest last."""
    return len(_CHANGES.get(name, ()))


def apply(name, inputs, free, seed, form=0):
    """Inputs under distribution `name`; those at positions `free` change, in place.

    REQUIRES: the tensors are dense. `seed` decides the places of spikes.
    """
    if name in _CHANGES:
        changed = set()
        for index in free:
            tensor = inputs[index]
            # The same tensor twice changes once.
            if tensor.data_ptr() not in changed:
                changed.add(tensor.data_ptr())
                generator = torch.Generator(tensor.device).manual_seed((seed + index) % 2**63)
                _CHANGES[name][form](tensor, generator, len(changed) - 1)
        if name == "DISTRIBUTION_RAMPS":
            _sort_labels(inputs, free)
    return inputs


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


def _shift(tensor, *_):
    wide = _wide(tensor)
    deviation = wide.std() if wide.numel() > 1 else wide.abs().max()
    tensor.add_((_OFFSET * deviation).to(tensor.dtype))


def _shift_to_one(tensor, *_):
    """A mean of 1, as many deviations off 0: products of many elements stay in range."""
    wide = _wide(tensor)
    mean = wide.mean()
    deviation = wide.std() if wide.numel() > 1 else mean.abs()
    scale = 1.0 / (_OFFSET * deviation).clamp_(min=torch.finfo(torch.float32).tiny)
    tensor.sub_(mean.to(tensor.dtype)).mul_(scale.to(tensor.dtype)).add_(1.0)


def _spike(tensor, generator, number):
    size = tensor.numel() / _ELEMENTS_PER_SPIKE_SIZE
    leader = _LEADER * _LEADER_GROWTH ** min(number, _MAX_GROWTHS)
    _scale_some(tensor, generator, min(max(size, _MIN_SPIKE), _MAX_SPIKE), leader)


def _spike_mildly(tensor, generator, _):
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


def _sort_labels(inputs, free):
    """Puts whole-numbered vectors in order: labels then go with the ramp, not against chance."""
    for index, value in enumerate(inputs):
        is_vector = isinstance(value, torch.Tensor) and value.dim() == 1 and index not in free
        if is_vector and value.is_floating_point():
            value.copy_(value.sort().values)


_CHANGES = {
    "DISTRIBUTION_TIMES_3": (_times(3.0),),
    "DISTRIBUTION_TIMES_001": (_times(0.01),),
    "DISTRIBUTION_NEGATED": (_times(-1.0),),
    "DISTRIBUTION_OFFSET": (_shift, _shift_to_one),
    "DISTRIBUTION_HEAVY_TAILED": (_spike, _spike_mildly),
    "DISTRIBUTION_RAMPS": (_ramp,),
}
