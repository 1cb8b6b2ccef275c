# SPDX-License-Identifier: Apache-2.0
"""How far an honest kernel of another summation order may be from the fp64 run.

The own error of one FP32 run is one sample of one order. A kernel that adds the
same numbers in another order is as right, and where sums cancel it may be several
times further away. To know how far, the fp64 run is repeated with each operator's
result disturbed by what FP32 rounding does in the least favourable usual order,
one running sum (`sum_rounding`, `norm_rounding`), and every other operator's by a few
roundings. The model itself carries the disturbances to the outputs, through whatever cancels
or amplifies there.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import noise_kernels, norm_rounding, settled, solver_rounding, sum_rounding
from .schema import arguments_by_name


class Disturbed(TorchDispatchMode):
    """While active, every floating-point result is off by its rounding, another one for another
    number."""

    def __init__(self, unit, number=0):
        super().__init__()
        self._seed = sum_rounding.SEED + number
        # Half a unit in the last place of 1: 2**-24 for FP32.
        self._unit = unit
        self._generators = {}
        # Results that were disturbed.
        self._count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.split("::")[1]
        if func.namespace == "aten" and name in _PICKING and not (kwargs or {}).get("stable"):
            return self._picked(func, args, kwargs or {})
        out = func(*args, **(kwargs or {}))
        if _is_view(func) or func.namespace != "aten":
            return out
        if name.rstrip("_") in _EXACT:
            return out
        first = out[0] if isinstance(out, (tuple, list)) and out else out
        if isinstance(first, torch.Tensor) and first.is_floating_point() and first.numel():
            rule = _RULES.get(name.rstrip("_"), sum_rounding.element)
            scale = rule(func, args, kwargs or {}, out, self._unit)
            is_exact = self._is_exact(name, first, args)
            if is_exact is not None:
                scale = scale if isinstance(scale, torch.Tensor) else scale.of(first)
                scale.masked_fill_(is_exact, 0.0)
            self._disturb(first, scale)
            if rule is norm_rounding.normalized:
                self._disturb_statistics(norm_rounding.statistics(func, args, out))
            # What takes a probability does not take a little more than one.
            ends = _ENDS.get(name.rstrip("_"))
            if ends:
                first.clamp_(*ends)
        return out

    def _picked(self, func, args, kwargs):
        """Of equal elements others are picked, or in another order: PyTorch promises none."""
        x = args[0]
        if not x.dim():
            return func(*args, **kwargs)
        axis = arguments_by_name(func, args, kwargs).get("dim", -1)
        options = {"generator": self._generator(x.device), "device": x.device}
        order = torch.randperm(x.shape[axis], **options)
        values, places = func(x.index_select(axis, order), *args[1:], **kwargs)
        return values, order[places]

    def _disturb(self, result, scale):
        """Adds noise of that scale, in units; `scale` is used up."""
        self._count += 1
        if noise_kernels.disturb(result, scale, self._unit, self._seed, self._count):
            return
        scale = scale if isinstance(scale, torch.Tensor) else scale.of(result)
        if scale.shape == result.shape and scale.is_contiguous() and result.is_contiguous():
            flat, scales = result.view(-1), scale.view(-1)
            for piece in sum_rounding.pieces(result):
                noise = self._noise(flat[piece])
                flat[piece].add_(scales[piece].mul_(self._unit).mul_(noise))
        else:
            result.add_(scale.mul_(self._unit).mul_(self._noise(result)))

    def _disturb_statistics(self, statistics):
        """A batch norm that is trained writes its running statistics, which are states."""
        if statistics is None:
            return
        self._count += 1
        if noise_kernels.disturb_statistics(statistics, self._unit, self._seed, self._count):
            return
        mean_scale, variance_scale = statistics.scales()
        self._disturb(statistics.running_mean, mean_scale)
        self._disturb(statistics.running_variance, variance_scale)

    def _is_exact(self, name, result, args):
        """Where no program rounds; None where each may."""
        if name in settled.RULES:
            return settled.RULES[name](args, result, self._unit)
        if name.rstrip("_") == "div" and not _is_by_powers(args[1], result):
            return None
        return self._is_short(result, args) if name.rstrip("_") in (*_PLAIN, "div") else None

    def _is_short(self, result, args):
        """Where a sum, difference or product of two short numbers is one itself. None where an
        operand never is one."""
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

    def _generator(self, device):
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device]

    def _noise(self, like):
        options = {"generator": self._generator(like.device), "device": like.device}
        noise = torch.randn(like.shape, dtype=torch.float32, **options)
        return noise.abs().div_(2).add_(sum_rounding.LEAST_DEVIATIONS).copysign_(noise)


def _is_by_powers(divisor, result):
    """Whether all of a divisor are powers of two, by which nobody rounds, whether or not they
    multiply by its reciprocal."""
    if not isinstance(divisor, torch.Tensor):
        divisor = torch.tensor(divisor, dtype=torch.float64)
    if divisor.numel() > min(result.numel(), _MOST_DIVISORS):
        return False
    return bool((torch.frexp(divisor.double()).mantissa.abs() == 0.5).all())


def unit_of(dtype):
    """Half a unit in the last place of 1 in `dtype`."""
    return torch.finfo(dtype).eps / 2


def _is_view(func):
    returns = func._schema.returns
    return any(r.alias_info is not None and not r.alias_info.is_write for r in returns)


# Operators whose results are elements of their operands, or numbers that the code names: a
# mask of -1e9 is not off by 100.
_EXACT = frozenset(
    """
    abs amax amin aminmax arange argmax argmin cat ceil clamp clamp_max clamp_min clone
    constant_pad_nd copy copysign cummax cummin detach diagonal_scatter embedding empty empty_like
    eye fill flip floor fmax fmin full full_like gather hardtanh im2col index index_copy index_fill
    index_put index_select kthvalue lift_fresh lift_fresh_copy masked_fill masked_scatter
    masked_select max max_pool2d_with_indices max_pool3d_with_indices maximum median min minimum mode
    nan_to_num nanmedian neg new_full new_ones new_zeros ones ones_like reflection_pad1d
    reflection_pad2d reflection_pad3d relu repeat replication_pad1d replication_pad2d
    replication_pad3d resize resize_as roll round scalar_tensor scatter select_scatter set sign
    slice_scatter sort stack take threshold topk tril triu trunc where zero zeros zeros_like
    _cudnn_rnn_flatten_weight _to_copy
    _reshape_alias _reshape_copy _unsafe_index _unsafe_view
    """.split()
)
# Divisors of which it is asked whether all are powers of two.
_MOST_DIVISORS = 1 << 16
# Those that pick elements, and leave open which of equal ones.
_PICKING = frozenset({"topk", "sort"})
# Operators that do not round what is short enough, and types by their unit.
_PLAIN = frozenset({"add", "sub", "rsub", "mul"})
_TYPES = {2.0**-24: torch.float32, 2.0**-11: torch.float16, 2.0**-8: torch.bfloat16}
# Least and largest result of operators that rounding does not lead beyond them.
_ENDS = {
    **dict.fromkeys(("sigmoid", "hardsigmoid", "_softmax"), (0.0, 1.0)),
    **dict.fromkeys(("tanh", "erf", "sin", "cos"), (-1.0, 1.0)),
}
_RULES = {
    "mm": sum_rounding.product(0, 1),
    "bmm": sum_rounding.product(0, 1),
    "mv": sum_rounding.product(0, 1),
    "dot": sum_rounding.product(0, 1),
    "addmm": sum_rounding.product(1, 2),
    "addmv": sum_rounding.product(1, 2),
    "baddbmm": sum_rounding.product(1, 2),
    "convolution": sum_rounding.convolution,
    "sum": sum_rounding.reduction,
    "mean": sum_rounding.reduction,
    "cumsum": sum_rounding.running_sum,
    "cumprod": sum_rounding.running_product,
    "prod": sum_rounding.positive,
    "linalg_vector_norm": sum_rounding.positive,
    "norm": sum_rounding.positive,
    "mse_loss": sum_rounding.positive,
    "smooth_l1_loss": sum_rounding.positive,
    "huber_loss": sum_rounding.positive,
    "soft_margin_loss": sum_rounding.positive,
    "multi_margin_loss": sum_rounding.positive,
    "multilabel_margin_loss_forward": sum_rounding.positive,
    "binary_cross_entropy": sum_rounding.positive,
    "nll_loss_forward": sum_rounding.positive,
    "nll_loss2d_forward": sum_rounding.positive,
    "var": norm_rounding.variance,
    "std": norm_rounding.variance,
    "var_mean": norm_rounding.variance,
    "std_mean": norm_rounding.variance,
    "avg_pool2d": sum_rounding.pooled,
    "avg_pool3d": sum_rounding.pooled,
    "_adaptive_avg_pool2d": sum_rounding.pooled,
    "_adaptive_avg_pool3d": sum_rounding.pooled,
    "native_layer_norm": norm_rounding.normalized,
    "native_group_norm": norm_rounding.normalized,
    "native_batch_norm": norm_rounding.normalized,
    "_native_batch_norm_legit": norm_rounding.normalized,
    "cudnn_batch_norm": norm_rounding.normalized,
    "_batch_norm_with_update": norm_rounding.normalized,
    "_softmax": norm_rounding.weighted,
    "_log_softmax": norm_rounding.weighted,
    "logsumexp": norm_rounding.weighted,
    "_linalg_solve_ex": solver_rounding.backward,
    "linalg_solve_triangular": solver_rounding.backward,
    "linalg_inv_ex": solver_rounding.backward,
    "linalg_cholesky_ex": solver_rounding.backward,
    "_linalg_det": solver_rounding.backward,
}
