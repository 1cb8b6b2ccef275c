# SPDX-License-Identifier: Apache-2.0
"""What the operators of a traced graph say about its runs."""

from .random_operators import SEED

# Parts of the names of operators that PyTorch's defaults let cuDNN compute in TF32.
_CUDNN = ("conv", "cudnn", "lstm", "gru", "rnn")


def draws_random(graph):
    """Whether an operator draws random numbers."""
    return any(SEED in node["argumentNames"] for node in graph["nodes"])


def may_use_tf32(graph):
    """Whether an operator runs in TF32 by default: a convolution or a recurrent layer."""
    return any(word in name for name in _operator_names(graph) for word in _CUDNN)


def _operator_names(graph):
    return {node["op"].split("::")[1].split(".")[0] for node in graph["nodes"]}
