# SPDX-License-Identifier: Apache-2.0
"""What rounding does to sums, products among them, as rules of `rounding`.

Each of the n additions of a running sum rounds the partial sum S that it makes, so the error is
about 0.4 u sqrt(sum of S^2), u being half a unit in the last place:

    sum of terms a_i    0.5 u sqrt(n) sqrt(s^2 + q + w)

where s = sum a_i is how far partial sums grow, q = sum a_i^2 how far they wander in
a random order, and w the square of the largest one in the order of some axis: terms
that lie sorted, as under ramps, go far before they cancel, for whoever adds them in
the order in which blocks start. A running sum as a result is disturbed by its own
partial sums. Terms below half a unit in the last place of such a partial sum are lost in it,
all of one sign as well: a plain sum may be off by as much as all of them together.

A rule (func, args, kwargs, out, unit) gives the scale of the disturbance of the first result, in
units: a tensor of its own that broadcasts to the result, or what such a one is computed from.
"""

import dataclasses
import math

import torch

# Longest running sum of usual kernels; longer sums are split among threads. Those that
# all threads add to, in the order in which they come, are the longest.
MAX_TERMS = 1 << 20
# Longest one within a norm or a softmax.
MAX_ROW_TERMS = 1 << 16
SUM_FACTOR = 0.5
# The same for a running sum that is a result.
_RUNNING_FACTOR = 1.0
# What it adds where terms are equal, as below. Its error was seen to be up to 25 times what
# wanders after 5,000 equal terms, and 16 times after as many of eight values.
_RUNNING_ALIKE_FACTOR = 0.1
# Equal terms are rounded alike in a plain sum as well, wherever they stand, for a partial sum is
# a multiple of its last place: n of them may be off by n roundings, of which this much was seen
# over the wandering ones.
ALIKE_FACTOR = 0.6
# Terms that are looked for again among all, to know how many are equal.
_PICKS = 16
# How fast that ends once terms differ by more than the last place of their sum in FP32.
_ALIKE_POWER = 8
FP32_LAST_PLACE = 2.0**-23
# Roundings of an operator without sums, such as exp.
ELEMENT_ROUNDINGS = 4.0
# Terms that lie sorted are rounded nearly alike: running sums of 2**20 of them were seen to be off
# by 3 times what wanders, and all to one side.
_SORTED_FACTOR = 16.0
# Terms of which no order rounds a sum are left to who updates a mean with each of them.
EXACT_FACTOR = 0.2
# Elements that tell nearly always that others are none.
_SOME = 4096
# Places along the sum of a product at which its partial sums are looked at, so many terms apart at
# least: fewer are not far from what they wander.
_PLACES, _LEAST_STRETCH = 8, 8
# So many terms tell how many are equal: of all sums together, and of each.
_ENOUGH_TERMS, _ENOUGH_OF_EACH = 1 << 24, 256
# Fewer are rounded too seldom to go astray together.
_FEW_TERMS = 8
# No element is disturbed by fewer standard deviations: often a few alone decide, those
# that are nearly zero, and luck with them would bound everybody else.
LEAST_DEVIATIONS = 2.0
SEED = 0x5EED
# Elements that are looked at together where each stands for itself.
_PIECE = 1 << 26


@dataclasses.dataclass
class Roundings:
    """The scale of `count` roundings of each element."""

    count: float

    def of(self, result):
        """As a tensor."""
        return result.abs().mul_(self.count)


@dataclasses.dataclass
class Sums:
    """The scale of sums, as `sum_scale` has it, and of `roundings` of each of them."""

    terms: int
    squares: torch.Tensor
    wander: torch.Tensor | float = 0.0
    roundings: float = 0.0

    def of(self, result):
        """As a tensor."""
        scale = sum_scale(self.terms, result, self.squares, self.wander)
        return scale.add_(result.abs(), alpha=self.roundings) if self.roundings else scale


def element(func, args, kwargs, out, unit):
    return Roundings(ELEMENT_ROUNDINGS)


def first_of(out):
    """The result of an operator, the first where it has several."""
    return out[0] if isinstance(out, (tuple, list)) else out


def usual_terms(terms):
    """Of the longest running sum that usual kernels make of so many terms."""
    return max(min(terms, MAX_TERMS), 1)


def sum_scale(terms, total, squares, wander=0.0, alike=None):
    """`squares` is q and `wander` w; see the module's comment. `alike` is 1 where all terms are
    equal, and the root of the share of two that are; None: it is not known."""
    parts = (total, squares, wander, alike)
    if not all(_is_flat(part, total) for part in parts):
        return _sum_scale(terms, *parts)
    scale = torch.empty_like(total)
    for piece in pieces(total):
        scale.view(-1)[piece] = _sum_scale(terms, *(_cut(part, piece) for part in parts))
    return scale


def pieces(x):
    """Slices of all elements of a dense tensor, each of so many that what is computed of them
    stays small beside a large one."""
    return [slice(start, start + _PIECE) for start in range(0, x.numel(), _PIECE)]


def _is_flat(part, total):
    """Whether it has a number for all elements, or for each one in its place."""
    if not isinstance(part, torch.Tensor) or not part.dim():
        return True
    return part.shape == total.shape and part.is_contiguous()


def _cut(part, piece):
    is_number = not isinstance(part, torch.Tensor) or not part.dim()
    return part if is_number else part.view(-1)[piece]


def _sum_scale(terms, total, squares, wander, alike):
    near = _near(terms, total, squares)
    alike = torch.maximum(near, alike) if isinstance(alike, torch.Tensor) else near
    root = math.sqrt(usual_terms(terms))
    more = alike.mul_(ALIKE_FACTOR * root).add_(1.0)
    size = (squares.abs() + wander).add_(total.square()).sqrt_()
    return size.mul_(SUM_FACTOR * root).mul_(more)


def _near(terms, total, squares):
    """1 where terms differ by less than the last place of their sum: then they are rounded alike
    as equal ones are."""
    spread = (squares.abs() * terms / total.square() - 1.0).clamp_(min=0.0).sqrt_()
    near = (FP32_LAST_PLACE * usual_terms(terms) / spread).clamp_(max=1.0).pow_(_ALIKE_POWER)
    return torch.nan_to_num(near, nan=0.0)


def product(first, second):
    """Rule of a product of the operands at two positions, others being added."""

    def rule(func, args, kwargs, out, unit):
        a, b = args[first], args[second]
        q = torch.matmul(a.square(), b.square())
        return Sums(a.shape[-1], q, _product_wander(a, b))

    return rule


def _product_wander(a, b):
    """w of a product: operands that are both sorted cancel late. Weights are not."""
    terms = a.shape[-1]
    step = max(-(-terms // _PLACES), _LEAST_STRETCH)
    partial = largest = None
    for start in range(0, terms - step, step):
        left = a.narrow(-1, start, step)
        right = b.narrow(-2 if b.dim() > 1 else 0, start, step)
        partial = _added(partial, left, right)
        size = partial.abs()
        largest = size if largest is None else torch.maximum(size, largest, out=largest)
    return 0.0 if largest is None else largest.square_()


def _added(partial, left, right):
    """The product of the two and what there is, in its place: attention's takes gigabytes."""
    if partial is None:
        return torch.matmul(left, right)
    dims = {partial.dim(), left.dim(), right.dim()}
    if dims == {2}:
        return partial.addmm_(left, right)
    if dims == {3} and left.shape[0] == right.shape[0]:
        return partial.baddbmm_(left, right)
    return partial.add_(torch.matmul(left, right))


def convolution(func, args, kwargs, out, unit):
    squared = list(args)
    squared[0], squared[1], squared[2] = args[0].square(), args[1].square(), None
    is_transposed = len(args) > 6 and args[6]
    weight = args[1]
    terms = weight.numel() // (weight.shape[1] if is_transposed else weight.shape[0])
    return Sums(terms, func(*squared, **kwargs))


def reduction(func, args, kwargs, out, unit):
    """Rule of a sum or a mean."""
    x = args[0]
    if not x.is_floating_point():
        return element(func, args, kwargs, out, unit)
    axes = axes_of(args)
    terms = max(x.numel() // max(out.numel(), 1), 1)
    divisor = terms if func._schema.name == "aten::mean" else 1
    if terms > _FEW_TERMS and are_on_grid(x, terms, unit):
        return out.abs().mul_(EXACT_FACTOR * math.sqrt(usual_terms(terms)) + ELEMENT_ROUNDINGS)
    shape = [1 if axis in axes else extent for axis, extent in enumerate(x.shape)]
    # In fp64: squares of numbers that a search looks among leave the range of FP32.
    total = out.double().reshape(shape) * divisor
    squares = torch.linalg.vector_norm(x, 2, axes, keepdim=True, dtype=torch.float64).square_()
    squares, wander = squares.reshape(shape), sum_wander(x, axes)
    alike = _alike(x, axes).double() if terms > _FEW_TERMS else None
    far = wander
    if terms > MAX_TERMS:
        far = wander + (wander - total.square()).clamp_(min=0.0) * _SORTED_FACTOR
    scale = sum_scale(terms, total, squares, far, alike)
    scale = torch.maximum(scale, _lost(x, axes, _partial(terms, total, squares, wander), unit))
    return scale.div_(divisor).reshape(out.shape).to(out.dtype)


def are_on_grid(x, terms, unit):
    """Whether no order rounds sums of so many of the elements: they are multiples of a number, of
    which such a sum has 1 / unit at most."""
    flat = x.reshape(-1)
    low, high = flat.aminmax()
    most = max(-low.item(), high.item()) * terms
    if not 0 < most < math.inf:
        return False
    step = math.ldexp(unit, math.frexp(most)[1])
    return all(_are_multiples(part, step) for part in (flat[:_SOME], flat))


def _are_multiples(x, step):
    return all(bool((part / step).frac_().eq_(0).all()) for part in x.split(_PIECE))


def axes_of(args):
    """Axes of a reduction, non-negative."""
    rank = args[0].dim()
    axes = args[1] if len(args) > 1 and not isinstance(args[1], torch.dtype) else None
    axes = [axes] if isinstance(axes, int) else axes
    return [axis % rank for axis in axes or range(rank)] if rank else []


def _partial(terms, total, squares, wander):
    """How large the partial sums of the longest usual running sum are, and one term alone."""
    part = usual_terms(terms) / terms
    return ((total.square() + wander) * part**2).add_(squares).sqrt_()


def _lost(x, axes, partial, unit):
    """What terms lose together, before others make up for it, that are rounded to the last place
    of such a partial sum, in units of the disturbance: all of it where they are smaller."""
    place = torch.ldexp(unit * torch.ones_like(partial), partial.frexp().exponent)
    rest = x / place.to(x.dtype)
    rest = sum_wander(rest.sub_(rest.round()), axes).sqrt_()
    return rest.mul(place).div_(unit * LEAST_DEVIATIONS).nan_to_num_(nan=0.0)


def _alike(x, axes):
    """Root of the chance that two terms are equal, and of what the largest alone, with either
    sign, give to it. Zeros round nothing."""
    x, axes = _enough(x, axes)
    size = x.abs()
    largest = _share(size == size.amax(axes, keepdim=True), axes)
    del size
    generator = torch.Generator().manual_seed(SEED)
    chance = torch.zeros_like(largest)
    for _ in range(_PICKS if axes else 0):
        picked = x
        for axis in axes:
            place = int(torch.randint(x.shape[axis], (), generator=generator))
            picked = picked.narrow(axis, place, 1)
        chance += _share(x == picked, axes).masked_fill_(picked == 0, 0.0) / _PICKS
    return torch.maximum(chance.sqrt_(), largest)


def _share(mask, axes):
    return mask.mean(axes, keepdim=True, dtype=torch.float32)


def _enough(x, axes):
    """As many of the terms of a large tensor as tell how many are equal, and their axes. Not
    each of a power of two, with which much repeats itself."""
    if len(axes) == x.dim() and x.numel() > 2 * _ENOUGH_TERMS:
        x = x.reshape(-1)[:: x.numel() // _ENOUGH_TERMS | 1]
        return x.view(-1, *[1] * (len(axes) - 1)), axes
    if not axes or x.numel() <= 2 * _ENOUGH_TERMS:
        return x, axes
    longest = max(axes, key=lambda axis: x.shape[axis])
    terms = math.prod(x.shape[axis] for axis in axes)
    step = min(x.numel() // _ENOUGH_TERMS, terms // _ENOUGH_OF_EACH, x.shape[longest] // 2)
    if step < 2:
        return x, axes
    chosen = [slice(None)] * x.dim()
    chosen[longest] = slice(None, None, step | 1)
    return x[tuple(chosen)], axes


def sum_wander(x, axes):
    """w of a sum along `axes`, any of which may be the outermost loop."""
    largest = torch.zeros((), dtype=torch.float64, device=x.device)
    for axis in axes:
        others = [other for other in axes if other != axis]
        partial = x.sum(others, keepdim=True, dtype=torch.float64) if others else x
        partial = torch.cumsum(partial, axis, dtype=torch.float64).square_()
        largest = torch.maximum(largest, partial.amax(axis, keepdim=True))
    return largest


def running_sum(func, args, kwargs, out, unit):
    if not out.is_floating_point() or not out.dim():
        return element(func, args, kwargs, out, unit)
    x, axis = args[0], args[1] % out.dim()
    shape = [-1 if other == axis else 1 for other in range(out.dim())]
    terms = torch.arange(1, out.shape[axis] + 1, device=out.device, dtype=out.dtype).view(shape)
    alike = _alike(x.to(out.dtype), [axis]).to(out) * terms.sqrt_()
    wandered = out.double().square().cumsum_(axis).sqrt_().to(out.dtype).mul_(_RUNNING_FACTOR)
    wandered.mul_(alike.mul_(_RUNNING_ALIKE_FACTOR).add_(1.0))
    return wandered.add_(out.abs() * ELEMENT_ROUNDINGS)


def running_product(func, args, kwargs, out, unit):
    terms = min(args[0].shape[args[1]] if args[0].dim() else 1, MAX_ROW_TERMS)
    return out.abs() * (ELEMENT_ROUNDINGS + SUM_FACTOR * math.sqrt(terms))


def positive(func, args, kwargs, out, unit):
    """A sum of terms that are positive as a rule, such as a norm or a loss."""
    first = first_of(out)
    terms = min(args[0].numel() // max(first.numel(), 1), MAX_TERMS)
    return first.abs() * (ELEMENT_ROUNDINGS + SUM_FACTOR * math.sqrt(max(terms, 1)))


def pooled(func, args, kwargs, out, unit):
    """Means over windows."""
    x = args[0]
    terms = max(x.numel() // max(out.numel(), 1), 1)
    q = func(x.square(), *args[1:], **kwargs).div_(terms)
    return Sums(terms, q, roundings=ELEMENT_ROUNDINGS)
