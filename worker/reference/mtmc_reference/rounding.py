# SPDX-License-Identifier: Apache-2.0
"""How far an honest kernel of another summation order may be from the fp64 run.

The own error of one FP32 run is one sample of one order. A kernel that adds the
same numbers in another order is as right, and where sums cancel it may be several
times further away. To know how far, the fp64 run is repeated with each operator's
result disturbed by what FP32 rounding does in the least favourable usual order,
one running sum. Each of its n additions rounds the partial sum S that it makes, so
the error is about 0.4 u sqrt(sum of S^2), u being half a unit in the last place:

    sum of terms a_i    0.5 u sqrt(n) sqrt(s^2 + q + w)

where s = sum a_i is how far partial sums grow, q = sum a_i^2 how far they wander in
a random order, and w the square of the largest one in the order of some axis: terms
that lie sorted, as under ramps, go far before they cancel, for whoever adds them in
the order in which blocks start. A running sum as a result is disturbed by its own
partial sums, and every other operator by a few roundings. Terms below half a unit in the
last place of such a partial sum are lost in it, all of one sign as well: a plain sum may be
off by as much as all of them together. The model itself carries
the disturbances to the outputs, through whatever cancels or amplifies there.
"""

import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Longest running sum of usual kernels; longer sums are split among threads. Those that
# all threads add to, in the order in which they come, are the longest.
_MAX_TERMS = 1 << 20
# Longest one within a norm or a softmax.
_MAX_ROW_TERMS = 1 << 16
_SUM_FACTOR = 0.5
# The same for a running sum that is a result.
_RUNNING_FACTOR = 1.0
# What it adds where terms are equal, as below. Its error was seen to be up to 25 times what
# wanders after 5,000 equal terms, and 16 times after as many of eight values.
_RUNNING_ALIKE_FACTOR = 0.1
# Equal terms are rounded alike in a plain sum as well, wherever they stand, for a partial sum is
# a multiple of its last place: n of them may be off by n roundings, of which this much was seen
# over the wandering ones.
_ALIKE_FACTOR = 0.6
# Terms that are looked for again among all, to know how many are equal.
_PICKS = 16
# How fast that ends once terms differ by more than the last place of their sum in FP32.
_ALIKE_POWER = 8
_FP32_LAST_PLACE = 2.0**-23
# Of a norm's row in which one element outweighs all others, for each of so many terms at most.
_LED_FACTOR, _MAX_LED_TERMS = 0.1, 4096
# Roundings of an operator without sums, such as exp.
_ELEMENT_ROUNDINGS = 4.0
# Places along the sum of a product at which its partial sums are looked at.
_PLACES = 8
# exp(-100) is no part of any sum, and exp(100) is infinite.
_FAR_EXPONENT = 100.0
# No element is disturbed by fewer standard deviations: often a few alone decide, those
# that are nearly zero, and luck with them would bound everybody else.
_LEAST_DEVIATIONS = 2.0
_SEED = 0x5EED


class Disturbed(TorchDispatchMode):
    """While active, every floating-point result is off by its rounding, another one for another
    number."""

    def __init__(self, unit, number=0):
        super().__init__()
        self._seed = _SEED + number
        # Half a unit in the last place of 1: 2**-24 for FP32.
        self._unit = unit
        self._generators = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if _is_view(func) or func.namespace != "aten":
            return out
        name = func._schema.name.split("::")[1]
        if name.rstrip("_") in _EXACT:
            return out
        first = out[0] if isinstance(out, (tuple, list)) and out else out
        if isinstance(first, torch.Tensor) and first.is_floating_point() and first.numel():
            rule = _RULES.get(name.rstrip("_"), _element)
            scale = rule(func, args, kwargs or {}, out)
            if rule is _reduction and args[0].is_floating_point():
                scale.add_(_lost(func, args, first, scale, self._unit))
            if name.rstrip("_") in _PLAIN and scale.shape == first.shape:
                is_exact = self._is_exact(first, args)
                scale = scale if is_exact is None else scale.masked_fill_(is_exact, 0.0)
            first.add_(scale.mul_(self._unit).mul_(self._noise(first)))
            if rule is _normalized:
                self._disturb_statistics(func, args)
            # What takes a probability does not take a little more than one.
            ends = _ENDS.get(name.rstrip("_"))
            if ends:
                first.clamp_(*ends)
        return out

    def _disturb_statistics(self, func, args):
        """A batch norm that is trained writes its running statistics, which are states."""
        names = [argument.name for argument in func._schema.arguments]
        given = dict(zip(names, args))
        for name, scale in _statistics_scales(func, given).items():
            given[name].add_(scale.mul_(self._unit).mul_(self._noise(given[name])))

    def _is_exact(self, result, args):
        """Where a sum, difference or product of two short numbers is one itself: there no
        program rounds. None where an operand never is one."""
        dtype = _TYPES.get(self._unit)
        if dtype is None:
            return None
        is_exact = result.to(dtype) == result
        for operand in args[:2]:
            if isinstance(operand, torch.Tensor):
                is_exact &= operand.to(dtype) == operand
            elif torch.tensor(operand, dtype=torch.float64).to(dtype).item() != operand:
                return None
        return is_exact

    def _noise(self, like):
        if like.device not in self._generators:
            self._generators[like.device] = torch.Generator(like.device).manual_seed(self._seed)
        options = {"generator": self._generators[like.device], "device": like.device}
        noise = torch.randn(like.shape, dtype=torch.float32, **options)
        return noise.abs().div_(2).add_(_LEAST_DEVIATIONS).copysign_(noise)


def unit_of(dtype):
    """Half a unit in the last place of 1 in `dtype`."""
    return torch.finfo(dtype).eps / 2


def _is_view(func):
    returns = func._schema.returns
    return any(r.alias_info is not None and not r.alias_info.is_write for r in returns)


# Each rule gives the scale of the disturbance of the first result, in units, as a
# tensor of its own that broadcasts to the result.


def _element(func, args, kwargs, out):
    first = out[0] if isinstance(out, (tuple, list)) else out
    return first.abs().mul_(_ELEMENT_ROUNDINGS)


def _sum_scale(terms, total, squares, wander=0.0, alike=0.0):
    """`squares` is q and `wander` w; see the module's comment. `alike` is 1 where all terms are
    equal, and the root of the share of two that are."""
    terms = max(min(terms, _MAX_TERMS), 1)
    alike = torch.maximum(_near(terms, total, squares), torch.as_tensor(alike).to(total))
    more = alike.mul_(_ALIKE_FACTOR * math.sqrt(terms)).add_(1.0)
    size = (squares.abs() + wander).add_(total.square()).sqrt_()
    return size.mul_(_SUM_FACTOR * math.sqrt(terms)).mul_(more)


def _near(terms, total, squares):
    """1 where terms differ by less than the last place of their sum: then they are rounded alike
    as equal ones are."""
    spread = (squares.abs() * terms / total.square() - 1.0).clamp_(min=0.0).sqrt_()
    near = (_FP32_LAST_PLACE * terms / spread).clamp_(max=1.0).pow_(_ALIKE_POWER)
    return torch.nan_to_num(near, nan=0.0)


def _product(first, second):
    """Rule of a product of the operands at two positions, others being added."""

    def rule(func, args, kwargs, out):
        a, b = args[first], args[second]
        q = torch.matmul(a.square(), b.square())
        return _sum_scale(a.shape[-1], out, q, _product_wander(a, b))

    return rule


def _product_wander(a, b):
    """w of a product: operands that are both sorted cancel late. Weights are not."""
    terms = a.shape[-1]
    step = -(-terms // _PLACES)
    partial, largest = 0.0, 0.0
    for start in range(0, terms - step, step):
        piece = b.narrow(-2 if b.dim() > 1 else 0, start, step)
        partial = torch.matmul(a.narrow(-1, start, step), piece).add_(partial)
        square = partial.square()
        largest = torch.maximum(square, largest) if start else square
    return largest


def _convolution(func, args, kwargs, out):
    squared = list(args)
    squared[0], squared[1], squared[2] = args[0].square(), args[1].square(), None
    is_transposed = len(args) > 6 and args[6]
    weight = args[1]
    terms = weight.numel() // (weight.shape[1] if is_transposed else weight.shape[0])
    return _sum_scale(terms, out, func(*squared, **kwargs))


def _reduction(func, args, kwargs, out):
    x = args[0]
    if not x.is_floating_point():
        return _element(func, args, kwargs, out)
    axes = _axes_of(args)
    terms = x.numel() // max(out.numel(), 1)
    wander = _sum_wander(x, axes)
    q = x.double().square().sum(axes, keepdim=True)
    if func._schema.name == "aten::mean":
        q, wander = q / terms**2, wander / terms**2
    q, wander, alike = (t.to(out).reshape(out.shape) for t in (q, wander, _alike(x, axes)))
    return _sum_scale(terms, out, q, wander, alike)


def _axes_of(args):
    """Axes of a reduction, non-negative."""
    rank = args[0].dim()
    axes = args[1] if len(args) > 1 and not isinstance(args[1], torch.dtype) else None
    axes = [axes] if isinstance(axes, int) else axes
    return [axis % rank for axis in axes or range(rank)] if rank else []


def _lost(func, args, out, scale, unit):
    """Terms that partial sums lose, in units of the disturbance: `scale` is what these wander."""
    x, axes = args[0], _axes_of(args)
    shape = [1 if axis in axes else extent for axis, extent in enumerate(x.shape)]
    terms = max(x.numel() // max(out.numel(), 1), 1)
    divisor = terms if func._schema.name == "aten::mean" else 1
    partial = scale.reshape(shape) * (divisor / (_SUM_FACTOR * math.sqrt(min(terms, _MAX_TERMS))))
    lost = torch.where(x.abs() < partial * unit, x, 0.0).sum(axes, keepdim=True).abs_()
    return lost.reshape(out.shape).to(scale.dtype).div_(unit * _LEAST_DEVIATIONS * divisor)


def _alike(x, axes):
    """Root of the chance that two terms are equal, and of what the largest alone, with either
    sign, give to it. Zeros round nothing."""
    size = x.abs()
    largest = (size == size.amax(axes, keepdim=True)).double().mean(axes, keepdim=True)
    generator = torch.Generator().manual_seed(_SEED)
    chance = torch.zeros_like(largest)
    for _ in range(_PICKS if axes else 0):
        picked = x
        for axis in axes:
            place = int(torch.randint(x.shape[axis], (), generator=generator))
            picked = picked.narrow(axis, place, 1)
        share = (x == picked).double().mean(axes, keepdim=True)
        chance += share.masked_fill_(picked == 0, 0.0) / _PICKS
    return torch.maximum(chance.sqrt_(), largest)


def _sum_wander(x, axes):
    """w of a sum along `axes`, any of which may be the outermost loop."""
    largest = torch.zeros((), dtype=torch.float64, device=x.device)
    for axis in axes:
        others = [other for other in axes if other != axis]
        partial = x.sum(others, keepdim=True, dtype=torch.float64) if others else x
        partial = torch.cumsum(partial, axis, dtype=torch.float64).square_()
        largest = torch.maximum(largest, partial.amax(axis, keepdim=True))
    return largest


def _running_sum(func, args, kwargs, out):
    if not out.is_floating_point() or not out.dim():
        return _element(func, args, kwargs, out)
    x, axis = args[0], args[1] % out.dim()
    shape = [-1 if other == axis else 1 for other in range(out.dim())]
    terms = torch.arange(1, out.shape[axis] + 1, device=out.device, dtype=out.dtype).view(shape)
    alike = _alike(x.to(out.dtype), [axis]).to(out) * terms.sqrt_()
    wandered = out.square().cumsum_(axis).sqrt_().mul_(_RUNNING_FACTOR)
    wandered.mul_(alike.mul_(_RUNNING_ALIKE_FACTOR).add_(1.0))
    return wandered.add_(out.abs() * _ELEMENT_ROUNDINGS)


def _positive(func, args, kwargs, out):
    """A sum of terms that are positive as a rule, such as a norm or a loss."""
    first = out[0] if isinstance(out, (tuple, list)) else out
    terms = min(args[0].numel() // max(first.numel(), 1), _MAX_TERMS)
    return first.abs() * (_ELEMENT_ROUNDINGS + _SUM_FACTOR * math.sqrt(max(terms, 1)))


def _variance(func, args, kwargs, out):
    x = args[0]
    ratio = x.mean().abs() / x.std().clamp_(min=torch.finfo(x.dtype).tiny)
    return _positive(func, args, kwargs, out) * (1.0 + ratio)


def _pooled(func, args, kwargs, out):
    """Means over windows."""
    x = args[0]
    terms = max(x.numel() // max(out.numel(), 1), 1)
    q = func(x.square(), *args[1:], **kwargs).div_(terms)
    return _sum_scale(terms, out, q).add_(out.abs(), alpha=_ELEMENT_ROUNDINGS)


def _running_product(func, args, kwargs, out):
    terms = min(args[0].shape[args[1]] if args[0].dim() else 1, _MAX_ROW_TERMS)
    return out.abs() * (_ELEMENT_ROUNDINGS + _SUM_FACTOR * math.sqrt(terms))


def _normalized(func, args, kwargs, out):
    """A norm over part of its input: errors of mean and variance, and of the division."""
    x, y = args[0], out[0]
    terms = min(x.numel() // max(_statistic(out).numel(), 1), _MAX_ROW_TERMS)
    factor = _ELEMENT_ROUNDINGS + _SUM_FACTOR * math.sqrt(terms) + _led(terms, y, out)
    # The mean's error is that of a sum as large as the mean over the deviation.
    ratio = _offset_ratio(func._schema.name, x, y, out)
    return (y.abs() + _largest_weight(func, args) * (1.0 + ratio)) * factor


def _statistics_scales(func, given):
    """Of a batch norm's running mean and variance, by name; none where it writes neither. Each is
    a sum of the old one and of the batch's, which may cancel."""
    is_trained = given.get("training", func._schema.name == "aten::_batch_norm_with_update")
    mean, variance = given.get("running_mean"), given.get("running_var")
    if not is_trained or mean is None or variance is None:
        return {}
    x = given["input"]
    part = given.get("momentum", given.get("exponential_average_factor"))
    axes = [axis for axis in range(x.dim()) if axis != 1]
    terms = max(x.numel() // max(mean.numel(), 1), 1)
    batch_mean = x.mean(axes)
    batch_variance = x.var(axes)
    squares = x.square().mean(axes) / terms
    wander = _sum_wander(x, axes).to(x).reshape(mean.shape) / terms**2
    sum_scale = _sum_scale(terms, batch_mean, squares, wander)
    ratio = (batch_mean.square() / batch_variance).sqrt_().nan_to_num_(posinf=0.0)
    variance_scale = batch_variance * (_SUM_FACTOR * math.sqrt(min(terms, _MAX_TERMS)))
    return {
        "running_mean": _updated(mean, batch_mean, sum_scale, part),
        "running_var": _updated(variance, batch_variance, variance_scale.mul_(1.0 + ratio), part),
    }


def _updated(new, batch, scale, part):
    """Of a running statistic that is `part` of the batch's, which is off by `scale`."""
    rest = new - batch * part
    return rest.abs_().add_(batch.abs() * part).mul_(_ELEMENT_ROUNDINGS).add_(scale * part)


def _led(terms, y, out):
    """What a row adds in which one element outweighs the others: these are alike then, and so
    are the roundings of what they add to it. Known of norms along the last axes alone."""
    statistic = _statistic(out)
    if statistic.dim() != y.dim():
        return 0.0
    axes = [axis for axis, extent in enumerate(statistic.shape) if extent < y.shape[axis]]
    if not axes:
        return 0.0
    led = y.square().amax(axes, keepdim=True) / (y.numel() / statistic.numel())
    return led.clamp_(max=1.0) * (_LED_FACTOR * min(terms, _MAX_LED_TERMS))


def _offset_ratio(name, x, y, out):
    """Mean over deviation of what each element is normalized with, to broadcast to `y`."""
    statistics = [t for t in out[1:3] if t.numel()]
    if len(statistics) < 2:
        return x.mean().abs() / x.std().clamp_(min=torch.finfo(x.dtype).tiny)
    mean, deviation = statistics
    ratio = (mean * deviation).abs().to(y.dtype)
    if name == "aten::native_layer_norm":
        return ratio
    if name == "aten::native_group_norm":
        channels = y.shape[1] // ratio.shape[1]
        ratio = ratio.repeat_interleave(channels, dim=1)
        return ratio.view(*ratio.shape, *[1] * (y.dim() - 2))
    return ratio.view(-1, *[1] * (y.dim() - 2))


def _statistic(out):
    return next((t for t in out[1:] if t.numel()), out[0])


def _largest_weight(func, args):
    names = [argument.name for argument in func._schema.arguments]
    weight = dict(zip(names, args)).get("weight")
    return 1.0 if weight is None else weight.abs().amax()


def _weighted(func, args, kwargs, out):
    """Exponentials over their sum, or the logarithm of that."""
    x = args[0]
    y = out[0] if isinstance(out, (tuple, list)) else out
    terms = min(x.numel() // max(y.numel(), 1), _MAX_ROW_TERMS)
    if x.numel() == y.numel() and len(args) > 1 and isinstance(args[1], int) and x.dim():
        terms = min(x.shape[args[1]], _MAX_ROW_TERMS)
    floor = 0.0 if func._schema.name == "aten::_softmax" else 1.0
    size = _exponent_size(func, args, x, y)
    return (y.abs() + floor) * (size + (_ELEMENT_ROUNDINGS + _SUM_FACTOR * math.sqrt(terms)))


def _exponent_size(func, args, x, y):
    """An exponent that is rounded is off by its own size: the largest one of a row that
    counts there, as far as it can be one without the row's maximum taken off. A mask of -1e9
    cannot. Broadcasts to `y`."""
    if not x.dim():
        return x.abs().clamp(min=1.0)
    axes = _axes_of(args)
    most = x.amax(axes, keepdim=True)
    size = torch.where(most - x < _FAR_EXPONENT, x, most).abs().amax(axes, keepdim=True)
    size = size.clamp_(1.0, _FAR_EXPONENT)
    return size if x.dim() == y.dim() else size.reshape(y.shape)


# Operators whose results are elements of their operands, or numbers that the code names: a
# mask of -1e9 is not off by 100.
_EXACT = frozenset(
    """
    abs amax amin arange argmax argmin cat ceil clamp clamp_max clamp_min clone constant_pad_nd copy
    detach embedding empty empty_like eye fill flip floor full full_like gather hardtanh index
    index_put index_select lift_fresh lift_fresh_copy masked_fill masked_scatter
    max max_pool2d_with_indices max_pool3d_with_indices maximum min minimum neg new_full new_ones
    new_zeros ones ones_like relu repeat resize resize_as roll round scalar_tensor scatter set sign sort
    stack threshold topk tril triu trunc where zero zeros zeros_like _cudnn_rnn_flatten_weight _to_copy
    _unsafe_index
    """.split()
)
# Operators that do not round what is short enough, and types by their unit.
_PLAIN = frozenset({"add", "sub", "rsub", "mul"})
_TYPES = {2.0**-24: torch.float32, 2.0**-11: torch.float16, 2.0**-8: torch.bfloat16}
# Least and largest result of operators that rounding does not lead beyond them.
_ENDS = {
    **dict.fromkeys(("sigmoid", "hardsigmoid", "_softmax"), (0.0, 1.0)),
    **dict.fromkeys(("tanh", "erf", "sin", "cos"), (-1.0, 1.0)),
}
_RULES = {
    "mm": _product(0, 1),
    "bmm": _product(0, 1),
    "mv": _product(0, 1),
    "dot": _product(0, 1),
    "addmm": _product(1, 2),
    "addmv": _product(1, 2),
    "baddbmm": _product(1, 2),
    "convolution": _convolution,
    "sum": _reduction,
    "mean": _reduction,
    "cumsum": _running_sum,
    "cumprod": _running_product,
    "prod": _positive,
    "linalg_vector_norm": _positive,
    "norm": _positive,
    "mse_loss": _positive,
    "smooth_l1_loss": _positive,
    "huber_loss": _positive,
    "soft_margin_loss": _positive,
    "multi_margin_loss": _positive,
    "multilabel_margin_loss_forward": _positive,
    "binary_cross_entropy": _positive,
    "nll_loss_forward": _positive,
    "nll_loss2d_forward": _positive,
    "var": _variance,
    "std": _variance,
    "var_mean": _variance,
    "std_mean": _variance,
    "avg_pool2d": _pooled,
    "avg_pool3d": _pooled,
    "_adaptive_avg_pool2d": _pooled,
    "_adaptive_avg_pool3d": _pooled,
    "native_layer_norm": _normalized,
    "native_group_norm": _normalized,
    "native_batch_norm": _normalized,
    "_native_batch_norm_legit": _normalized,
    "cudnn_batch_norm": _normalized,
    "_batch_norm_with_update": _normalized,
    "_softmax": _weighted,
    "_log_softmax": _weighted,
    "logsumexp": _weighted,
}
