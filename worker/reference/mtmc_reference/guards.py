# SPDX-License-Identifier: Apache-2.0
"""Small numbers of a graph that keep a divisor or the argument of a logarithm away from zero,
and inputs that are about as large as they are.

Much above its guard a group does not show what the guard is, much below it shows nothing
else: whether it is added, is a lower bound, or another number, shows between the two.
"""

import math

import torch

from .graph_domain import number, operator

# Largest number that is taken for a guard, and most sizes that are tried.
_MOST_GUARD, _MOST_SIZES = 2e-2, 6
_EPSILONS = ("eps", "epsilon")
# By operator, the argument that may be a guard.
_BOUNDS = {
    "add": "other",
    "clamp_min": "min",
    "clamp": "min",
    "maximum": "other",
    "hypot": "other",
}
# Powers of ten to either side of a size.
_SPREAD = 0.5


def guards(domain):
    """The distinct guards of a graph, in the order of its operators."""
    found = []
    for node in domain.nodes:
        arguments = dict(zip(node["argumentNames"], node["arguments"]))
        names = (*_EPSILONS, _BOUNDS.get(operator(node)))
        found += [number(arguments[name]) for name in names if name in arguments]
    small = [guard for guard in found if guard is not None and 0 < guard <= _MOST_GUARD]
    return list(dict.fromkeys(small))


def near_guards(found):
    """A way to make slices of a tensor, each by itself, as large as a guard: as its root where
    it stands beside a mean of squares, and as itself beside a mean or a norm."""

    def change(tensor, generator, *_):
        extent = tensor.shape[-1] if tensor.dim() else 1
        tiny = max(torch.finfo(dtype).tiny for dtype in (torch.float32, tensor.dtype))
        sizes = [size for size in _sizes(found, extent) if size > tiny * 2**24]
        if not sizes:
            return
        wide = torch.promote_types(tensor.dtype, torch.float32)
        root = tensor.to(wide).square().mean().sqrt().clamp_(min=torch.finfo(wide).tiny)
        factor = torch.tensor(sizes, device=tensor.device, dtype=wide) / root
        # Whoever takes one group over the first axis meets the largest size, which is the
        # first; along the second one, be it channels or rows, they stay near each other.
        count = tensor.shape[0] if tensor.dim() else 1
        order = torch.randperm(count, generator=generator, device=tensor.device) % len(sizes)
        factor = factor[order].view(_along(tensor, 0))
        for axis in range(tensor.dim())[: 2 if tensor.dim() > 2 else 1]:
            shape = _along(tensor, axis)
            power = torch.rand(shape, generator=generator, device=tensor.device)
            factor = factor * torch.pow(10.0, power.mul_(2 * _SPREAD).sub_(_SPREAD))
        tensor.copy_(tensor.to(wide) * factor)

    return change


def _along(tensor, axis):
    """The shape of what has one element for each place of an axis."""
    return [extent if number == axis else 1 for number, extent in enumerate(tensor.shape)]


def _sizes(found, extent):
    """Sizes of an element at which a guard counts, the largest first of each."""
    sizes = []
    for guard in found:
        root = math.sqrt(guard)
        sizes += [root, guard / math.sqrt(extent), guard, math.sqrt(guard / extent)]
    return list(dict.fromkeys(sizes))[:_MOST_SIZES]
