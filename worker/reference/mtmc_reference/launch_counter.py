# SPDX-License-Identifier: Apache-2.0
"""How many kernels a forward pass launches, from the operators that it calls."""

import torch
from torch.utils import _python_dispatch, _pytree


class LaunchCounter(_python_dispatch.TorchDispatchMode):
    """Counts operators that write: neither views nor tensors without content.

    An operator is taken to launch one kernel; some, such as sorts, launch more.
    """

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        keywords = keywords or {}
        result = function(*arguments, **keywords)
        if function._schema.is_mutable:
            self.count += 1
        elif not function.overloadpacket.__name__.startswith("empty"):
            self.count += bool(_storages(result) - _storages((arguments, keywords)))
        return result


def _storages(values):
    """Addresses of the memory of all tensors in there."""
    leaves = _pytree.tree_leaves(values)
    return {x.untyped_storage().data_ptr() for x in leaves if isinstance(x, torch.Tensor)}
