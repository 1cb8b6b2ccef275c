# SPDX-License-Identifier: Apache-2.0
"""Copies of many tensors at once: one by one, hundreds of them take as long as a model's run."""

import collections

import torch


@torch.no_grad()
def copy_all(tensors, values):
    """Writes `values` into `tensors`, of the same shapes and types, in place."""
    by_type = collections.defaultdict(list)
    for tensor, value in zip(tensors, values):
        by_type[tensor.dtype].append((tensor, value))
    for pairs in by_type.values():
        torch._foreach_copy_(*map(list, zip(*pairs)))


@torch.no_grad()
def copies(tensors):
    """New tensors of the same layouts and elements."""
    made = [torch.empty_like(tensor) for tensor in tensors]
    copy_all(made, tensors)
    return made
