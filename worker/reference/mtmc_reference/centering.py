# SPDX-License-Identifier: Apache-2.0
"""Whether a graph takes a mean off its elements, as variances and norms do.

Who computes a variance as the mean of squares less the square of the mean is off by the square of
how many deviations that mean is, and honest programs are by that number alone: the farther the
inputs are moved, the better both are told apart, until rounding decides what honest ones answer.
"""

from .graph_domain import CARRIERS, operator

_NORMS = frozenset(
    """
    var std var_mean std_mean layer_norm native_layer_norm group_norm native_group_norm batch_norm
    native_batch_norm _native_batch_norm_legit cudnn_batch_norm _batch_norm_with_update
    instance_norm cov corrcoef
    """.split()
)
# What leaves a mean one, but for a factor.
_ONWARD = CARRIERS | {"div", "mul"}
_SUMS = frozenset({"mean", "sum", "nanmean", "adaptive_avg_pool1d", "adaptive_avg_pool2d"})


def takes_means_off(domain):
    """Whether an operator of the GraphDomain does it, or a difference of elements and a mean."""
    means = set()
    for node in domain.nodes:
        op = operator(node)
        if op in _NORMS:
            return True
        taken = means.intersection(domain.values_of(node))
        if taken and op in ("sub", "rsub"):
            return True
        if op in _SUMS or taken and op in _ONWARD:
            means.update(node["results"])
    return False
