# SPDX-License-Identifier: Apache-2.0
"""Small numbers of a graph that keep a divisor or the argument of a logarithm away from zero,
and inputs that are about as large as they are.

Much above its guard a group does not show what the guard is, much below it shows nothing
else: whether it is added, is a lower bound, or another number, shows between the two.
"""

import collections
import math

import torch

from .drawing import pick, uniform
from .graph_domain import number, operator

# Largest number that is taken for a guard, and most sizes that are tried.
_MOST_GUARD, _MOST_SIZES = 2e-2, 6
_EPSILONS = ("eps", "epsilon")
# Operators that have theirs beside a norm, where others have one beside a variance.
_OF_NORMS = frozenset(
    "pairwise_distance cosine_similarity triplet_margin_loss cosine_embedding_loss".split()
)
# By operator, the argument that may be a guard.
_BOUNDS = {
    "add": "other",
    "clamp_min": "min",
    "clamp": "min",
    "maximum": "other",
    "hypot": "other",
}
_ROOTS, _NORMS = frozenset({"sqrt", "rsqrt"}), frozenset({"sqrt", "norm", "linalg_vector_norm"})
# Powers of ten to either side of a size.
_SPREAD = 0.5
# How far a size is from the least number of its type; FP16 has few powers of two.
_ROOM, _ROOM_OF_HALF = 2.0**24, 2.0**4
# Powers of ten of a whole tensor: below a guard it shows all of it, far above nothing.
_BELOW = (-1.5, 0.3)


def guards(domain):
    """The distinct guards of a graph, in the order of its operators."""
    return list(dict.fromkeys(guard for node in domain.nodes for guard in _guards_of(node)))


def sizes(domain):
    """Distinct sizes of what the guards of a graph stand beside."""
    return list(dict.fromkeys(size for found in _sizes_by_node(domain) for size in found))


def sizes_behind(domain):
    """The same of those guards that stand behind each value of a graph, by its name."""
    found = collections.defaultdict(tuple)
    # Networks have a thousand operators, and one number in most of their norms.
    for node, own in reversed(list(zip(domain.nodes, _sizes_by_node(domain)))):
        behind = (size for result in node["results"] for size in found[result])
        own = tuple(dict.fromkeys((*own, *behind)))
        if own:
            for value in domain.values_of(node):
                found[value] = tuple(dict.fromkeys((*found[value], *own)))
    return found


def _sizes_by_node(domain):
    """For each operator sizes at which its guards count: a guard beside a norm, its root beside a
    variance or under a root, and both elsewhere."""
    made_by = {result: operator(node) for node in domain.nodes for result in node["results"]}
    for node in domain.nodes:
        takers = (operator(taker) for result in node["results"] for taker, *_ in domain.takers(result))
        has_norm = operator(node) in _OF_NORMS
        of_variance = not has_norm and any(name in node["argumentNames"] for name in _EPSILONS)
        is_under_root = of_variance or not has_norm and any(op in _ROOTS for op in takers)
        is_of_norm = has_norm or any(made_by.get(value) in _NORMS for value in domain.values_of(node))
        own = _guards_of(node)
        found = [] if is_under_root else own
        yield [*found, *(math.sqrt(guard) for guard in own if is_under_root or not is_of_norm)]


def _guards_of(node):
    arguments = dict(zip(node["argumentNames"], node["arguments"]))
    names = (*_EPSILONS, _BOUNDS.get(operator(node)))
    found = [number(arguments[name]) for name in names if name in arguments]
    return [guard for guard in found if guard is not None and 0 < guard <= _MOST_GUARD]


def is_met(found, dtype):
    """Whether a tensor of that type may be as large as the root of one of the guards."""
    return any(math.sqrt(guard) > _least(dtype) for guard in found)


def near_guards(found, sizes):
    """A way to make slices of a tensor, each by itself, as large as a guard, and as its root where
    that is among the `sizes` of what stands beside one: beside a norm alone it is not, and a sum of
    all slices would not show the small ones."""

    def change(tensor, generator, *_):
        extent = tensor.shape[-1] if tensor.dim() else 1
        tried = _sizes(found, extent, _least(tensor.dtype), sizes)
        if not tried:
            return
        wide = torch.promote_types(tensor.dtype, torch.float32)
        root = tensor.to(wide).square().mean().sqrt().clamp_(min=torch.finfo(wide).tiny)
        factor = torch.tensor(tried, device=tensor.device, dtype=wide) / root
        # Whoever takes one group over the first axis meets the largest size, which is the
        # first; along the second one, be it channels or rows, they stay near each other.
        count = tensor.shape[0] if tensor.dim() else 1
        order = torch.randperm(count, generator=generator, device=tensor.device) % len(tried)
        factor = factor[order].view(_along(tensor, 0))
        for axis in range(tensor.dim())[: 2 if tensor.dim() > 2 else 1]:
            shape = _along(tensor, axis)
            power = torch.rand(shape, generator=generator, device=tensor.device)
            factor = factor * torch.pow(10.0, power.mul_(2 * _SPREAD).sub_(_SPREAD))
        tensor.copy_(tensor.to(wide) * factor)

    return change


def _least(dtype):
    """A size below which some elements would lose their bits; squares are taken in FP32."""
    return torch.finfo(dtype).tiny * (_ROOM_OF_HALF if dtype == torch.float16 else _ROOM)


def sized(found):
    """A way to make a tensor of one of the sizes that were `found`: each element, the norm of a row,
    or that of all."""

    def change(tensor, generator):
        rows = tensor.shape[-1] if tensor.dim() else 1
        size = pick(found, generator) / math.sqrt(pick((1, rows, tensor.numel()), generator))
        size *= 10.0 ** uniform(generator, *_BELOW)
        wide = torch.promote_types(tensor.dtype, torch.float32)
        root = tensor.to(wide).square().mean().sqrt()
        if root > 0:
            tensor.copy_(tensor.to(wide) / root * size)
        else:
            tensor.fill_(size)

    return change


def sized_lines(found):
    """The same of rows, each by itself: (rows, generator) to other ones."""

    def change(rows, generator):
        shape, device = (len(rows), 1), rows.device
        wide = torch.promote_types(rows.dtype, torch.float32)
        drawn = torch.randint(len(found), shape, generator=generator, device=device)
        power = torch.rand(shape, generator=generator, device=device).to(wide)
        low, high = _BELOW
        size = torch.tensor(found, dtype=wide, device=device)[drawn]
        size = size * torch.pow(10.0, power * (high - low) + low)
        root = rows.to(wide).square().mean(1, keepdim=True).sqrt()
        return (rows.to(wide) / root.clamp(min=torch.finfo(wide).tiny) * size).to(rows.dtype)

    return change


def _along(tensor, axis):
    """The shape of what has one element for each place of an axis."""
    return [extent if number == axis else 1 for number, extent in enumerate(tensor.shape)]


def _sizes(found, extent, least, beside):
    """Sizes of an element at which a guard counts, the largest first of each."""
    sizes = []
    for guard in found:
        root = math.sqrt(guard)
        has_root = any(math.isclose(root, size) for size in beside)
        sizes += [root] * has_root + [guard / math.sqrt(extent), guard]
        sizes += [math.sqrt(guard / extent)] * has_root
    return [size for size in dict.fromkeys(sizes) if size > least][:_MOST_SIZES]
