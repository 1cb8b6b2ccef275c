# SPDX-License-Identifier: Apache-2.0
"""Ways that a tensor takes by itself in a mixed workload, where every other one takes its own.

The other distributions do one kind of thing to all inputs at once. Here one may be far out while
another is zero, one of equal rows while another is as drawn, a label in order while values are
minute. In some each line of a tensor, a row or a column, goes another way, so that as many
combinations are met as there are lines; in others a tensor goes one way as a whole. Such ways come
in groups, through which the workloads lead each tensor in turn, in an order of its own. A way is a
function of (tensor, generator) that changes it in place.
"""

import dataclasses

import torch

from . import frames, guards, patterns
from .drawing import one_of, pick, sign, uniform
from .float_ways import deviation, stay
from .pieces import pieces
from .special_values import zigzag

# Powers of ten by which all of a tensor is scaled, and its lines; where it must stay near what was
# drawn; and deviations by which it is moved.
_FAR, _SMALL, _FARTHEST, _SMALLEST = (0.7, 4.0), (-6.0, -0.7), (4.0, 15.0), (-25.0, -6.0)
_MILD = (-1.0, 1.0)
_MOVES = (4.0, 60.0)
# Room to the end of the type.
_ROOM = 64
# Part of the elements that are left of a sparse line, and of the lines that stay.
_LEFT, _STAY = 0.15, 0.25
# Fields of plan.Plan for what a model has, of up to one axis and of more.
_OF_MODEL = ("vectors", "matrices")
# How many of the tensors go as a whole, in workloads that take turns, and how many lines in a row
# may go the same way.
_WHOLE, _BLOCKS = (0.0, 0.25, 0.8), (1, 1, 4, 16)
# Of so many workloads one is none of those in which few whole numbers come in turn.
_TURNS = 3
# Rows of a square that may be a graph.
_LEAST_SQUARE = 4
# Elements up to which a tensor may be copied, as lines along another axis than the first are.
_MOST_COPIED = 1 << 24


@dataclasses.dataclass
class Choice:
    """What a tensor may do in a mixed workload: `whole` groups of (weight, way), (weight, way) by
    `lines`, empty where these are no others, and `mild` ones where the reference refuses those.
    Where all go together, it goes with those of a `kind`, a field of Plan, or by its `name` in the
    graph. `turns`, if it is there, gives the way of a workload by its number, in most of those in
    which it goes apart, and where others go together without it."""

    whole: list
    lines: list
    mild: list
    kind: str = ""
    name: str = ""
    turns: object = None

    def ways(self, number, seed, plan=None):
        """Ways in the workload of that number, the mildest last; none where the tensor stays. With
        a plan.Plan it goes as that says."""
        if plan and not (plan.is_apart and self._way_of(plan) is None):
            return self._ways_together(number, seed, plan)
        if self.turns and number % _TURNS:
            return [self.turns(number - number // _TURNS)] * 2
        generator = torch.Generator().manual_seed(seed % 2**63)
        order = torch.randperm(len(self.whole), generator=generator).tolist()
        generator.manual_seed((seed + 1000003 * number) % 2**63)
        is_whole = not self.lines or uniform(generator, 0, 1) < _WHOLE[number % len(_WHOLE)]
        # Those numbers alone with which it may go as a whole; no group has one kind of them.
        turn = number - number // len(_WHOLE) if self.lines else number
        turn += turn // len(order)
        first = self.whole[order[turn % len(order)]] if is_whole else self.lines
        found = [one_of(ways, generator) for ways in (first, self.mild) if ways]
        return [] if found[0] is stay else found

    def _way_of(self, plan):
        if plan.named is not None:
            return plan.named.get(self.name)
        return getattr(plan, self.kind) if self.kind else None

    def _ways_together(self, number, seed, plan):
        generator = torch.Generator().manual_seed((seed + 1000003 * number) % 2**63)
        way = self._way_of(plan)
        # A threshold that stays is met from the other side.
        is_for_all = plan.is_apart or plan.is_for_all or plan.named is not None
        is_model = self.kind in _OF_MODEL and not is_for_all
        if way is None and self.turns:
            return [self.turns(number)]
        if way is None or is_model and uniform(generator, 0, 1) < _STAY:
            return []
        return [way, *(one_of(ways, generator) for ways in [self.mild] if ways)]


# Powers of ten of how much farther all else is than what a path goes along.
_FARTHER = (0.5, 3.0)
# How often what lies on it is not below zero.
_ARE_COSTS = 0.7


def path(tensor, generator):
    """Square matrices of which only one path through all rows is near, from each to another one:
    what is found by going along it is met nowhere else."""
    count = tensor.shape[-1]
    order = torch.randperm(count, generator=generator, device=tensor.device)
    far = tensor.abs().max() * 10.0 ** uniform(generator, *_FARTHER)
    near = tensor[..., order[:-1], order[1:]].clone()
    # Of costs none is below zero.
    near = near.abs() if uniform(generator, 0, 1) < _ARE_COSTS else near
    tensor.copy_(tensor.abs().add_(far))
    tensor[..., order[:-1], order[1:]] = near


def squares(value):
    """Groups of square matrices, besides those of other floats."""
    is_square = value.dim() > 1 and value.shape[-1] == value.shape[-2] >= _LEAST_SQUARE
    return [[(2, path), (1, _symmetric), (1, _diagonal)]] * 2 if is_square else []


FRAMES = [(1, frames.zeros), (1, frames.of_size(1)), (1, frames.of_size(-1))]


def floats(is_wide, is_alone, sizes=()):
    """Groups of ordinary floats, and their (weight, way) by lines; where it is not `is_wide` they
    keep about their size, and what `is_alone` never stays. Some are of the `sizes` of guards."""
    lines = [(1, _by_lines(_lines(is_wide, sizes)))]
    common = [
        [(1, _zero)],
        [(1, _moved)],
        [(1, _one_value), (2, _equal_rows), (1, _same_rows)],
        [(2, _in_order), (1, _one_sign), (2, _zigzag)],
        [(2, _sparse), (1, _below_powers)],
        FRAMES,
        *([] if is_alone else [[(1, stay)]]),
    ]
    if not is_wide:
        return [*common, [(1, _scaled(_MILD))]], lines
    far = [(2, _scaled(_FAR)), (1, _scaled(_FARTHEST))]
    small = [(3, _scaled(_SMALL)), (1, _scaled(_SMALLEST))]
    return [*common, far, small, *_sized(sizes), [(1, _one_far)]], lines


def _sized(sizes):
    return [[(1, guards.sized(sizes))]] if sizes else []


def floats_of_one_value(is_wide, is_alone, spread, sizes=()):
    """The same of floats that are all one value, until the way `spread` has made them others."""
    groups, lines = floats(is_wide, is_alone, sizes)
    apart = [[(w, way if way is stay else _after(spread, way)) for w, way in found] for found in groups]
    return apart, [(w, _after(spread, way)) for w, way in lines]


def mild_floats():
    """(weight, way) that keep signs and about the size of a tensor."""
    return [(2, _scaled(_MILD)), *_KEEPING, (2, _by_lines(_KEEPING_LINES))]


def _size(tensor):
    """The deviation, of equal elements their size, of zeros 1."""
    spread = deviation(tensor)
    low, high = tensor.aminmax()
    size = torch.where(spread > 0, spread, torch.maximum(high, -low).to(spread.dtype))
    return torch.where(size > 0, size, 1.0)


def _scaled(decades):
    def change(tensor, generator):
        most = torch.finfo(tensor.dtype).max / _ROOM
        factor = 10.0 ** uniform(generator, *decades)
        largest = max(abs(end.item()) for end in tensor.aminmax())
        tensor.mul_(min(factor, most / largest) if largest else 1.0)

    return change


def _zero(tensor, _):
    tensor.zero_()


def _moved(tensor, generator):
    side = sign(generator)
    tensor.add_((side * uniform(generator, *_MOVES) * _size(tensor)).to(tensor.dtype))


def _one_far(tensor, generator):
    """One element of each of some rows is far out."""
    power = 10.0 ** uniform(generator, 1.0, 6.0)
    size = min(power * _size(tensor).item(), torch.finfo(tensor.dtype).max / _ROOM)
    side = sign(generator)
    part = uniform(generator, 0.0, 1.0) ** 2
    for rows in pieces(tensor):
        some = torch.rand(len(rows), generator=generator, device=rows.device) <= part
        some[0] = True
        place = torch.randint(rows.shape[1], (len(rows), 1), generator=generator, device=rows.device)
        found = rows.scatter(1, place, torch.full_like(place, 1, dtype=rows.dtype) * (side * size))
        rows.copy_(torch.where(some[:, None], found, rows))


def _one_value(tensor, generator):
    flat = tensor.reshape(-1)
    place = torch.randint(flat.numel(), (), generator=generator, device=generator.device)
    tensor.fill_(flat[place].clone())


def _equal_rows(tensor, _):
    rows = tensor.view(-1, tensor.shape[-1]) if tensor.dim() > 1 else tensor.view(1, -1)
    rows.copy_(rows[:, :1].clone().expand(rows.shape))


def _same_rows(tensor, _):
    if tensor.dim() > 1:
        tensor.copy_(tensor[:1].clone().expand(tensor.shape))


def _one_sign(tensor, generator):
    """Of what has one sign the other."""
    side = 1 if tensor.max() <= 0 else -1 if tensor.min() >= 0 else sign(generator)
    tensor.abs_().mul_(side)


def _in_order(tensor, generator):
    """All elements, or those of each row, up or down."""
    is_of_all = uniform(generator, 0, 1) < 0.5 and tensor.numel() <= _MOST_COPIED
    is_down = uniform(generator, 0, 1) < 0.4
    for rows in [tensor.view(1, -1)] if is_of_all else pieces(tensor):
        rows.copy_(rows.sort(dim=1, descending=is_down).values)


def _zigzag(tensor, generator):
    for rows in pieces(tensor):
        rows.copy_(zigzag(rows, generator))


def _sparse(tensor, generator):
    for rows in pieces(tensor):
        left = torch.rand(rows.shape, generator=generator, device=rows.device) < _LEFT
        rows.masked_fill_(~left, 0)


def _below_powers(tensor, _):
    """The largest number below the next power of two, each with its sign."""
    for rows in pieces(tensor):
        wide = rows.double()
        power = torch.exp2(wide.abs().log2().ceil())
        below = power * (1 - torch.finfo(rows.dtype).eps / 2)
        rows.copy_(torch.where(wide == 0, wide, below.copysign(wide)))


def _symmetric(tensor, _):
    """As far as it is square; a filter reads the same from both sides."""
    if tensor.dim() > 1 and tensor.shape[-1] == tensor.shape[-2]:
        tensor.copy_((tensor + tensor.transpose(-1, -2)) / 2)
    else:
        tensor.copy_((tensor + tensor.flip(-1)) / 2)


def _diagonal(tensor, generator):
    """One number on the diagonal, zero elsewhere."""
    if tensor.dim() < 2:
        return
    number = tensor.abs().max() if uniform(generator, 0, 1) < 0.5 else 1.0
    eye = torch.eye(*tensor.shape[-2:], dtype=tensor.dtype, device=tensor.device)
    tensor.copy_((eye * number).expand(tensor.shape))


_KEEPING = [(1, _one_value), (1, _equal_rows), (1, _same_rows), (1, _in_order), (0.5, _below_powers)]
_STRUCTURED = [*_KEEPING[1:], (1, _symmetric), (1, _diagonal)]


# Lines: (rows, generator) to other rows, each by itself.


def _powers(decades):
    def change(rows, generator):
        power = torch.rand(len(rows), 1, generator=generator, device=rows.device)
        low, high = decades
        wide = torch.promote_types(rows.dtype, torch.float32)
        most = torch.finfo(rows.dtype).max / _ROOM
        found = rows.to(wide) * torch.pow(10.0, power * (high - low) + low)
        return found.clamp_(-most, most).to(rows.dtype)

    return change


def _move_lines(rows, generator):
    drawn = torch.rand(len(rows), 1, generator=generator, device=rows.device).to(rows.dtype) * 2 - 1
    far = _MOVES[0] + (_MOVES[1] - _MOVES[0]) * drawn.abs()
    return rows + far.copysign(drawn) * _size(rows).to(rows.dtype)


def _line_far(rows, generator):
    place = torch.randint(rows.shape[1], (len(rows), 1), generator=generator, device=rows.device)
    return rows.scatter(1, place, _powers((1.0, 6.0))(rows.gather(1, place), generator))


def _line_value(rows, _):
    return rows[:, :1].expand(rows.shape)


def _line_sign(rows, generator):
    side = 2 * torch.randint(2, (len(rows), 1), generator=generator, device=rows.device) - 1
    return rows.abs() * side.to(rows.dtype)


def _line_order(rows, _):
    return rows.sort(dim=1).values


def _line_unit(rows, generator):
    """Zero but for a one, in front or at any place."""
    place = torch.randint(rows.shape[1], (len(rows), 1), generator=generator, device=rows.device)
    place *= torch.randint(2, place.shape, generator=generator, device=rows.device)
    return torch.zeros_like(rows).scatter(1, place, 1.0)


def _line_sparse(rows, generator):
    return rows * (torch.rand(rows.shape, generator=generator, device=rows.device) < _LEFT)


def _line_zero(rows, _):
    return torch.zeros_like(rows)


def _lines(is_wide, sizes=()):
    scales = [_powers((0.7, 6.0)), _powers((-7.0, -0.7)), _line_far] if is_wide else [_powers(_MILD)]
    scales += [guards.sized_lines(sizes)] if sizes and is_wide else []
    kinds = [_move_lines, _line_value, _line_sign, _line_order, _line_sparse, zigzag]
    return [*scales, _line_zero, *kinds, _line_unit]


# Those that change nothing of single elements.
_OF_ROWS = (_line_far, _line_value, _line_order, _line_sparse, zigzag, _line_unit)
_KEEPING_LINES = [_powers(_MILD), _line_value, _line_order]


def _by_lines(kinds):
    """Each line along one axis in one of a few ways, or as it was."""

    def change(tensor, generator):
        axes = [0, *(range(1, tensor.dim()) if tensor.numel() <= _MOST_COPIED else ())]
        axis = pick(axes, generator) if tensor.dim() else 0
        moved = tensor.movedim(axis, 0) if tensor.dim() else tensor.view(1)
        lines = moved.reshape(len(moved), -1)
        own = kinds if lines.shape[1] > 1 else [kind for kind in kinds if kind not in _OF_ROWS]
        device = tensor.device
        count = len(lines)
        blocks = pick(_BLOCKS, generator)
        kind = torch.randint(len(own), (-(-count // blocks),), generator=generator, device=device)
        kind = kind.repeat_interleave(blocks)[:count]
        stays = torch.rand(count, generator=generator, device=device) < _STAY
        for number, other in enumerate(own):
            mine = torch.nonzero((kind == number) & ~stays).view(-1)
            if len(mine):
                lines[mine] = other(lines[mine], generator).to(lines.dtype)
        if lines.data_ptr() != tensor.data_ptr():
            moved.copy_(lines.view(moved.shape))

    return change


# What a parameter or buffer takes.


def _parameters(is_wide):
    """Groups of parameters and buffers of floats: as a checkpoint may have them, or as they are
    never drawn."""
    scales = [[(1, _scaled(_FAR)), (1, _one_far)], [(1, _scaled(_SMALL))]] if is_wide else []
    return [
        [(1, _near_public)],
        [(1, _zero)],
        [(1, _one), (2, _one_value)],
        [(1, _negated), (1, _one_sign)],
        [(1, _moved), (1, _sparse)],
        _STRUCTURED,
        *scales,
    ]


def state_choice(ways, swept, tensor, uses, sizes=(), exact=None, name=""):
    """The Choice of a tensor of the model: its own ways, those of other states, and the values that
    it is swept through; some of the `sizes` of guards behind it, some of an `exact` way to where an
    operator behind it turns. The graph calls it `name`."""
    near = [(1, way) for way in ways.near]
    others = [(1, way) for way in [*ways.near, *ways.first, *ways.second]]
    swept = [[(1, _swept(way)) for way in swept if way is not None]]
    groups, lines, kind = [[(1, stay)], others, *filter(None, swept)], [], ""
    is_bound = uses.is_probability or uses.is_ordered or uses.is_written or uses.is_restricted
    if is_bound or not tensor.is_contiguous():
        return Choice(groups, lines, near, name="" if tensor.is_floating_point() else name)
    groups += [[(1, exact)]] * 2 if exact else []
    if tensor.is_floating_point() and tensor.element_size() > 2:
        kind = _OF_MODEL[min(tensor.dim(), 2) // 2]
    if tensor.dtype == torch.bool:
        groups += [patterns.masks()] if tensor.numel() > 1 else []
    elif not tensor.is_floating_point():
        groups += [[(1, _zero)], [(1, _one)]]
    elif tensor.numel() == 1:
        is_wide = tensor.element_size() > 2
        groups += [*_numbers(is_wide), *_sized(sizes if is_wide else ())]
    else:
        is_wide = tensor.element_size() > 2
        groups += [[(1, stay)], *_parameters(is_wide), *_sized(sizes if is_wide else ())]
        lines = [(1, _by_lines(_lines(is_wide, sizes)))]
        if (tensor == tensor.reshape(-1)[0]).all():
            # What is 0 everywhere cannot be scaled, nor can what is 1 be put in order.
            spread = ways.near[0]
            groups += [[(w, _after(spread, way)) for w, way in found] for found in _unequal(is_wide)]
            lines = [(w, _after(spread, way)) for w, way in lines]
    return Choice(groups, lines, near, kind, name if kind or not tensor.is_floating_point() else "")


def _numbers(is_wide):
    """Groups of a single number."""
    scales = [[(1, _scaled(_FAR))], [(1, _scaled(_SMALL))]] if is_wide else [[(1, _scaled(_MILD))]]
    return [[(1, _near_public)], [(1, _zero)], [(3, _negated), (1, _one)], *scales]


def _unequal(is_wide):
    return [[(1, _scaled(_FAR)), (1, _one_far)] if is_wide else [(1, _moved)], [(1, _in_order), (1, _one_sign)]]


def _after(first, second):
    def change(tensor, generator):
        first(tensor, generator)
        second(tensor, generator)

    return change


def _swept(way):
    return lambda tensor, generator: way(tensor, generator, False)


def _near_public(tensor, generator):
    """Each element within one per cent or a tenth."""
    most = 10.0 ** uniform(generator, -3.0, -1.0)
    drawn = torch.rand(tensor.shape, generator=generator, device=tensor.device) * 2 - 1
    tensor.mul_((1 + most * drawn).to(tensor.dtype))


def _one(tensor, _):
    tensor.fill_(1)


def _negated(tensor, _):
    tensor.neg_()
