# SPDX-License-Identifier: Apache-2.0
"""Mixed workloads that are made for what the operators of a graph ask (`graph_asks`).

They take the place of some in which all tensors go apart, and only of graphs that ask. A way is a
function of (tensor, generator) that changes it in place.
"""

import torch

from . import around, joined
from .drawing import pick, uniform
from .pieces import pieces
from .plan import Plan

# Of how many workloads one is made for what is asked, where little is and where much is.
_EVERY, _EVERY_OF_MANY, _MANY = 3, 2, 3
# Rows that inputs and the model have in common, powers of ten of how far from these theirs are in
# parts of an element, and powers of two to which both are moved.
_COMMON, _APART, _MOVES = 4, (-4.5, -2.0), (0, 0, 5, 8)
# Powers of two by which both are moved, in sizes of the inputs.
_FAR_MOVES, _OFF_MOVES = (6, 8, 10, 12), (4, 5, 6, 7)
# Powers of two of a divisor, and steps of its halves.
_DIVISORS, _HALVES = (-3, 2), 12
# Powers of ten of what has no square in FP32, and least size of a power.
_HUGE = (19.5, 30.0)
# Powers to either side of one.
_MOST_POWERS = {2: 12, 10: 6}
# Powers of whole numbers, at most.
_MOST_WHOLE = 9
# Elements that are drawn at once.
_AT_ONCE = 1 << 24


def plan(number, seed, asks):
    """The Plan of the mixed workload of that number; None where its tensors go apart."""
    every = _EVERY_OF_MANY if len(asks) > _MANY else _EVERY
    if not asks or number % every:
        return None
    generator = torch.Generator().manual_seed(seed % 2**63)
    order = torch.randperm(len(asks), generator=generator).tolist()
    kind, value = asks[order[number // every % len(asks)]]
    generator.manual_seed((seed + 1000003 * number) % 2**63)
    return _PLANS[kind](value, generator)


def _beside(names, generator):
    """Rows of the tensors are next to a few that they have in common."""
    seed = int(uniform(generator, 0, 2**31))
    near = 10.0 ** uniform(generator, *_APART)
    power = pick(_MOVES, generator)
    way = _next_to_common(seed, near, 2.0**power if power else 0.0)
    return Plan(named=dict.fromkeys(names, way))


def _moved(powers):
    """The tensors are as they were, beside one number."""

    def plan(names, generator):
        by = 2.0 ** pick(powers, generator) * pick((1, -1), generator)
        return Plan(named=dict.fromkeys(names, lambda tensor, _: tensor.add_(by)))

    return plan


def _followed(names, generator):
    """Each place leads to the one before it, or a little farther back, or all make one circle."""
    farthest = pick((1, 1, 2, 4), generator)
    is_circle = uniform(generator, 0, 1) < 0.3

    def follow(tensor, generator):
        count, device = len(tensor), tensor.device
        place = torch.arange(count, device=device)
        if is_circle:
            order = torch.randperm(count, generator=generator, device=device)
            found = torch.empty_like(order).scatter(0, order, order.roll(1))
        else:
            back = torch.randint(1, farthest + 1, (count,), generator=generator, device=device)
            found = (place - back).clamp_(min=0)
        # None leads farther than some did.
        tensor.copy_(found.clamp_(max=int(tensor.max())))

    return Plan(named=dict.fromkeys(names, follow))


def _joined(names, generator):
    """Rows that are one if their numbers are packed into one, in one order or the other."""
    seed = int(uniform(generator, 0, 2**31))
    return Plan(named=joined.ways(names, seed, is_reversed=uniform(generator, 0, 1) < 0.3))


def _count(count, generator):
    """So many, one less or more stand out, or are true; what is compared may be below zero."""
    out = around.standing_out(count)
    beside = pick((0.0, 1.0, 10.0), generator)

    def stand_out(tensor, generator):
        out(tensor, generator)
        most = beside * max(abs(end.item()) for end in tensor.aminmax())
        for rows in pieces(tensor):
            rows.add_(rows.sign(), alpha=most)

    return Plan(stand_out, None, None, around.whole(count), around.opened(count), is_for_all=True)


def _halves(_, generator):
    """What is divided is a multiple of half of what it is divided by."""
    unit = 2.0 ** int(uniform(generator, *_DIVISORS))

    def divided(tensor, generator):
        size = tensor.to(torch.promote_types(tensor.dtype, torch.float32)).square().mean().sqrt()
        for rows in pieces(tensor):
            steps = (rows / (size if size > 0 else 1.0) * pick((2, _HALVES), generator)).round_()
            rows.copy_(steps * (unit / 2))

    def divisor(tensor, _):
        tensor.copy_(torch.full_like(tensor, unit).copysign(tensor))

    return Plan(divided, divisor, None, is_for_all=True)


def _powers(base, generator):
    """Powers of a number, the numbers next to them, and whole ones."""

    def floats(tensor, generator):
        for rows in pieces(tensor):
            most = _MOST_POWERS[base]
            shape, device = rows.shape, rows.device
            power = torch.randint(-most, most + 1, shape, generator=generator, device=device)
            exact = torch.pow(float(base), power.double()).to(rows.dtype)
            side = torch.randint(-1, 2, shape, generator=generator, device=device).to(rows.dtype)
            near = torch.nextafter(exact, torch.where(side == 0, exact, exact + side * exact))
            rows.copy_(near.copysign(rows))

    def whole(tensor, generator):
        ends = torch.iinfo(tensor.dtype)
        powers = [base**power for power in range(1, _MOST_WHOLE + 1)]
        values = [v for p in powers for v in (p - 1, p, p + 1) if v <= ends.max]
        found = torch.tensor(values, dtype=tensor.dtype, device=tensor.device)
        drawn = torch.randint(len(values), tensor.shape, generator=generator, device=tensor.device)
        tensor.copy_(found[drawn])

    return Plan(floats, None, None, whole, is_for_all=True)


def _huge(_, generator):
    """Inputs have no squares."""

    def change(tensor, generator):
        for rows in pieces(tensor):
            drawn = torch.rand(len(rows), 1, generator=generator, device=rows.device).double()
            power = _HUGE[0] + (_HUGE[1] - _HUGE[0]) * drawn
            rows.copy_((rows.double() * torch.pow(10.0, power)).to(rows.dtype))

    return Plan(change, None, None, is_for_all=True)


# By the kinds of graph_asks.asks.
_PLANS = {
    "beside": _beside,
    "far": _moved(_FAR_MOVES),
    "off": _moved(_OFF_MOVES),
    "joined": _joined,
    "followed": _followed,
    "count": _count,
    "halves": _halves,
    "powers": _powers,
    "huge": _huge,
}


def _next_to_common(seed, near, by):
    def change(tensor, generator):
        if tensor.dim() == 0:
            return
        length = tensor.shape[-1]
        # The same for all tensors with rows of that length.
        common = torch.Generator(tensor.device).manual_seed(seed)
        rows = torch.randn(_COMMON, length, generator=common, device=tensor.device) + by
        flat = tensor.view(-1, length)
        drawn = torch.randint(_COMMON, (len(flat),), generator=generator, device=tensor.device)
        each = max(_AT_ONCE // length, 1)
        for own, which in zip(flat.split(each), drawn.split(each)):
            noise = torch.randn(own.shape, generator=generator, device=tensor.device)
            own.copy_(rows[which] + near * noise)

    return change
