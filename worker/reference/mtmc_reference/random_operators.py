# SPDX-License-Identifier: Apache-2.0
"""Operators that draw random numbers.

Every run of the reference starts from the job's seed. A library call draws from the
generator of its process, so the first one in a graph has the seed as one more argument,
and those after it go on from there, in the order of the reference.
"""

import torch

# Name of that argument.
SEED = "seed"

# Those that no tag of PyTorch tells.
_UNTAGGED = frozenset({"aten::dropout", "aten::feature_dropout", "aten::rrelu"})
# Arguments without which these draw nothing.
_CHANCES = ("dropout", "dropout_p")


def draws_random(target, arguments):
    """Whether a call of the ATen overload `target` draws, by the arguments of its graph node."""
    is_tagged = torch.Tag.nondeterministic_seeded in target.tags
    if not is_tagged and target._schema.name not in _UNTAGGED:
        return False
    chances = [arguments[name].get("floatValue") for name in _CHANCES if name in arguments]
    is_training = all(
        arguments.get(name, {}).get("boolValue", True) for name in ("train", "training")
    )
    return is_training and (any(chances) or not chances)
