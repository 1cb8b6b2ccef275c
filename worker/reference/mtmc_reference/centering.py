# SPDX-License-Identifier: Apache-2.0
"""Whether a graph takes a mean off its elements, as variances and norms do.

Who computes a variance as the mean of squares less the square of the mean is off by the square of
how many deviations that mean is, and honest programs are by that number alone: the farther the
inputs are moved, the better both are told apart, until rounding decides what honest ones answer.
"""

import math

from .graph_domain import CARRIERS, operator

_NORMS = frozenset(
    """
    var std var_mean std_mean layer_norm native_layer_norm group_norm native_group_norm batch_norm
    native_batch_norm _native_batch_norm_legit cudnn_batch_norm _batch_norm_with_update
    instance_norm cov corrcoef
    """.split()
)
# Those of all of a slice along the first axis, of a batch along the second one.
_SLICES = frozenset(op for op in _NORMS if "batch" in op or "group" in op or "instance" in op)
# What leaves a mean one, but for a factor.
_ONWARD = CARRIERS | {"div", "mul"}
_SUMS = frozenset({"mean", "sum", "nanmean", "adaptive_avg_pool1d", "adaptive_avg_pool2d"})


def terms_of_means(domain):
    """How many elements the longest mean has that an operator of the GraphDomain takes off, or
    that elements lose; 0 where there is none."""
    most, means = 0, {}
    for node in domain.nodes:
        op = operator(node)
        taken = [means[value] for value in domain.values_of(node) if value in means]
        if op in _NORMS:
            most = max(most, _terms_of_norm(domain, node))
        if op in ("sub", "rsub"):
            most = max([most, *taken])
        if op in _SUMS:
            means.update(dict.fromkeys(node["results"], _terms_of_sum(domain, node)))
        elif op in _ONWARD and taken:
            means.update(dict.fromkeys(node["results"], max(taken)))
    return most


def _terms_of_sum(domain, node):
    source, result = domain.values_of(node)[0], node["results"][0]
    return max(math.prod(domain.shape(source)) // max(math.prod(domain.shape(result)), 1), 1)


def _terms_of_norm(domain, node):
    """At most: groups of channels are smaller than a slice."""
    shape, op = domain.shape(domain.values_of(node)[0]), operator(node)
    if op in _SLICES:
        axis = 1 if "batch" in op else 0
        return max(math.prod(shape) // max(shape[axis] if len(shape) > axis else 1, 1), 1)
    if "layer" in op:
        arguments = dict(zip(node["argumentNames"], node["arguments"]))
        count = len(arguments.get("normalized_shape", {}).get("list", {}).get("elements", ()))
        return max(math.prod(shape[-count:]), 1)
    return _terms_of_sum(domain, node) if op not in ("cov", "corrcoef") else shape[-1]
